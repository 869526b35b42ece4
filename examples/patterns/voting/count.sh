#!/bin/sh
# Counts votes: count.sh safe unsafe unsafe. The migration is safe if most say so, and at least three have voted.
set -eu
safe=0 unsafe=0
for vote; do
    case $vote in safe) safe=$((safe + 1)) ;; unsafe) unsafe=$((unsafe + 1)) ;; *) echo "no vote: $vote" >&2; exit 2 ;; esac
done
[ $# -ge 3 ] || { echo "only $# votes" >&2; exit 2; }
[ "$safe" -gt "$unsafe" ] && echo "safe, by $safe of $# votes" || echo "unsafe, by $unsafe of $# votes"
