#!/bin/sh
# Posts to a Slack incoming webhook. SLACK_WEBHOOK_URL is its address. Needs curl and jq.
set -eu
# Slack takes <, > and & for its own syntax: <!channel> would call everybody.
body=$(jq -c 'def plain: gsub("&"; "&amp;") | gsub("<"; "&lt;") | gsub(">"; "&gt;");
    {text: ("*" + (.event | ascii_upcase) + "* " + ((.chain.name // .chain.task) | plain) + ": " + (.message | .[:2500] | plain)
        + (if .question then "\n`agent-cli answer " + .question.id[:8] + " …`" else "" end))}')
printf '%s' "$body" | curl --silent --show-error --fail --max-time 20 --header 'Content-Type: application/json' --data-binary @- \
        --output /dev/null "$SLACK_WEBHOOK_URL"
