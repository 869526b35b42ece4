#!/bin/sh
# Records the answers that the buttons of ntfy.sh send, until it is stopped. `agent-cli watch` beside it continues the chains.
# NTFY_URL and NTFY_ANSWERS as for ntfy.sh. Needs curl and jq. With --once it reads what is there and ends.
set -eu
[ "${1:-}" = --once ] && query='poll=1&since=all' || query='since=1m'
curl --silent --show-error --fail --no-buffer ${NTFY_TOKEN:+--header "Authorization: Bearer $NTFY_TOKEN"} \
    "$NTFY_URL/$NTFY_ANSWERS/json?$query" |
    jq --unbuffered -r 'select(.event == "message") | .message | select(test("^[0-9a-f-]{36} [^\n\r]+$"))' |
    while read -r id answer; do
        # What begins with a hyphen is an answer, too. One that was answered before is refused, which is no harm.
        agent-cli answer "$id" -- "$answer" </dev/null || true
    done
