#!/bin/sh
# Succeeds once the newest CI run of this branch is over, and prints how it ended.
set -eu
run=$(gh run list --branch "$(git branch --show-current)" --limit 1 --json databaseId --jq '.[0].databaseId')
[ "$(gh run view "$run" --json status --jq .status)" = completed ] || { echo "run $run is not over" >&2; exit 1; }
gh run view "$run" --json conclusion,url --jq '"\(.conclusion): \(.url)"'
