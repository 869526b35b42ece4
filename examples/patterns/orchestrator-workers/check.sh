#!/bin/sh
# Fails if the old name is left anywhere but in an alias.
set -eu
left=$(grep -rn fetch_user src | grep -v 'fetch_user = load_user' || true)
[ -z "$left" ] || { echo "$left"; exit 1; }
echo "no fetch_user is left"
