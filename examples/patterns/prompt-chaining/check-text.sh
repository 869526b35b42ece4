#!/bin/sh
# Fails if the text is too long, or praises.
set -eu
words=$(wc -w < announcement.txt)
[ "$words" -le 80 ] || { echo "too long: $words words"; exit 1; }
! grep -niwE 'best|revolutionary|seamless|amazing' announcement.txt
