#!/bin/sh
# Sends to a phone with ntfy (https://ntfy.sh). NTFY_URL is the server, NTFY_TOPIC a topic that nobody can guess. Needs curl and jq.
#
# With NTFY_ANSWERS, a second topic, approvals get the buttons Allow and Deny, and questions one for each option. A button sends
# "ID ANSWER" to that topic, where ntfy-answers.sh reads it. Whoever knows that topic can answer for you: use a server and topics
# that only you can use (access tokens: NTFY_TOKEN). An approval gets no button if the message cannot show all of the call as it is.
set -eu
body=$(jq -c --arg topic "$NTFY_TOPIC" --arg answers "${NTFY_ANSWERS:-}" --arg url "$NTFY_URL" --arg token "${NTFY_TOKEN:-}" '
    # All that a person allows, in the form in which it was recorded: also where it runs, and where its paths lead.
    def place: [.directory | "in " + .real] + [.paths[]? | select(.real != .path) | .path + " leads to " + .real] | join("\n");
    def call: .question.permission | .tool + "\n" + (.input | if (keys == ["command"]) then .command else tojson end)
        + (if .place then "\n" + (.place | place) else "" end);
    # All that a button could answer.
    def asked: .question.ask | [.question, .context // empty,
        ((.options // [])[] | "- " + .key + (if (.description // "") == "" then "" else ": " + .description end))] | join("\n");
    def whole: if .question.permission then call elif .question.plan then (.question.plan.text // "")
        elif .question.ask then asked else .message end;
    def button($name; $answer): {action: "http", label: $name, url: ($url + "/" + $answers), method: "POST",
        body: (.question.id + " " + $answer), clear: true}
        + if $token == "" then {} else {headers: {Authorization: ("Bearer " + $token)}} end;
    # Characters that are not seen, or that turn the text around, would show something else than what is allowed.
    def hides: test("[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}\\p{Co}\u00a0\u034f\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200a"
        + "\u202f\u205f\u2800\u3000\u3164\ufe00-\ufe0d\uffa0\udb40\udc00-\udb43\udfff]|[ -~][\ufe0e\ufe0f]");
    # A blank at the end of a line is not seen, either.
    def fits: (whole | utf8bytelength) <= 3000 and (whole | gsub("[\n\t]"; "") | hides | not)
        and ((.question.permission | not) or (whole | test(" (\n|$)") | not));
    # A button has one short line.
    def short: (. | length) <= 30 and (test("[\n\t]") | not);
    def buttons:
        if $answers == "" or (.question | not) or (fits | not) then []
        elif .question.ask then . as $it | [(.question.ask.options // [])[].key] as $keys
            | if ($keys | length) > 3 or ([$keys[] | short] | all | not) then [] else [$keys[] as $key | $it | button($key; $key)] end
        else [button("Allow"; "allow"), button("Deny"; "deny")] end;
    {topic: $topic, title: ((.chain.name // .chain.task) + ": " + .event),
     message: ((if (.question | not) then .message[:2000] elif fits then whole else "cannot be shown here as it is: agent-cli questions " + .question.id[:8] end)
        | if . == "" then "(no text)" else . end),
     priority: (if .question or .event == "failed" then 4 else 3 end), actions: buttons}')
printf '%s' "$body" | curl --silent --show-error --fail --max-time 20 ${NTFY_TOKEN:+--header "Authorization: Bearer $NTFY_TOKEN"} \
        --data-binary @- --output /dev/null "$NTFY_URL"
