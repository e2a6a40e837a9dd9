# Each program in turn edits a file that another has just changed: it is refused, reads why, and goes elsewhere. No byte is lost.
. "$here/crew.sh"
crewlog_init

# The holder changes a.txt and stays; the other tries once the change is made.
for pair in claude:codex codex:gemini gemini:opencode opencode:claude; do
    holder=${pair%:*} other=${pair#*:}
    git checkout -q a.txt
    play "$holder" "$(turns "$(turn "$(look $holder)")" "$(turn "$(change $holder base "by-$holder")")" \
        "{\"after\": {\"$other\": 4}, \"text\": \"Done.\"}")" \
        "$other" "$(turns "$(AFTER='{"'$holder'": 3}' turn "$(look $other)")" "$(turn "$(change $other "by-$holder" lost)")" \
        "$(turn "$(write $other "$other-$holder.txt" elsewhere)")" "$done_turn")"
    agent "$holder" "$holder" &
    agent "$other" "$other"
    wait $!
    kill "$model_pid" && model_pid=
    [ "$(cat a.txt)" = "by-$holder" ] || fail "$other changed a.txt under the lease of $holder: $(cat a.txt)"
    [ "$(cat "$other-$holder.txt")" = elsewhere ] || fail "$other did not go elsewhere"
    told "$other" "a.txt is" || fail "the model of $other was not told who has a.txt"
done
[ "$(count_events EditRefused)" -ge 4 ] || fail "$(count_events EditRefused) refused edits are in the log"
judge
