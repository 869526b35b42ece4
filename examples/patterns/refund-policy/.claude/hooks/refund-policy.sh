#!/bin/sh
# A PreToolUse hook: allows refunds of up to 500 for each order, counting those that were paid before. A person decides about anything
# else that mentions refund.sh, such as a list of several commands. About other commands it says nothing.
set -eu
cd "$CLAUDE_PROJECT_DIR"
[ -e refunds.csv ] || : > refunds.csv
exec jq -c --rawfile paid refunds.csv '
    def decide($decision; $reason): {hookSpecificOutput:
        {hookEventName: "PreToolUse", permissionDecision: $decision, permissionDecisionReason: $reason}};
    def paid($order): [$paid | split("\n")[] | split(",") | select(.[0] == $order) | .[1] | tonumber] | add // 0;
    .tool_input.command | select(contains("refund.sh"))
    | (capture("\\A\\./refund\\.sh (?<order>[A-Z]-[0-9]+) (?<amount>[0-9]{1,6})\\z") // null)
    | if . == null then decide("ask"; "this is not a single refund")
      else (paid(.order) + (.amount | tonumber)) as $sum
        | if $sum <= 500 then decide("allow"; "up to 500")
          else decide("ask"; "\($sum) in all for order \(.order)") end
      end'
