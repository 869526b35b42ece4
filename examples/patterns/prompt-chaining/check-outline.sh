#!/bin/sh
# Fails unless the outline has every change, by its name.
set -eu
missing=$(cut -d: -f1 changes.txt | while read -r name; do grep -q "^$name:" outline.txt || printf ' %s' "$name"; done)
[ -z "$missing" ] || { echo "missing:$missing"; exit 1; }
