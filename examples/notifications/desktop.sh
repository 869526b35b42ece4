#!/bin/sh
# Shows a notice on the desktop: with osascript on macOS, elsewhere with notify-send.
# The texts are arguments, never a part of a script, and the title does not begin with a hyphen.
title="agent-cli: $AGENT_CLI_CHAIN_NAME: $AGENT_CLI_EVENT"
if command -v osascript >/dev/null; then
    exec osascript -e 'on run {title, message}' -e 'display notification message with title title' -e 'end run' \
        "$title" "$AGENT_CLI_MESSAGE"
fi
# The body may contain markup.
body=$(printf '%s' "$AGENT_CLI_MESSAGE" | sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g')
exec notify-send --app-name=agent-cli -- "$title" "$body"
