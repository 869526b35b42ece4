#!/bin/sh
# A PostToolUse hook: dates become 2026-11-24, states become words. Lines that are not JSON objects stay as they are.
exec jq -c '
    def date: if type == "number" then todate[:10]
        elif type == "string" then sub("\\A(?<m>[0-9]{2})/(?<d>[0-9]{2})/(?<y>[0-9]{4})\\z"; "\(.y)-\(.m)-\(.d)") else . end;
    def state: if type == "number" then ["new", "paid", "packed", "sent"][.] // "unknown state \(.)"
        elif type == "string" then ascii_downcase | gsub("_"; " ") else . end;
    def normal: if type != "object" then . else with_entries(
        if .key == "date" then .value |= date elif .key == "state" then .value |= state else . end) end;
    .tool_response | .stdout |= (split("\n") | map(. as $line | try (fromjson | normal | tojson) catch $line) | join("\n"))
    | {hookSpecificOutput: {hookEventName: "PostToolUse", updatedToolOutput: .}}'
