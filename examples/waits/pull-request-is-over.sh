#!/bin/sh
# Succeeds once the pull request of this branch is merged or closed, and prints which.
set -eu
state=$(gh pr view --json state --jq .state)
[ "$state" != OPEN ] || { echo "it is open" >&2; exit 1; }
echo "$state"
