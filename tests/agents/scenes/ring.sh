# Claude and Codex wait for each other's files: both are told of the ring, and the one that should release does.
. "$here/crew.sh"
crewlog_init

play claude "$(turns "$(turn "$(tool claude reserve_paths '{"paths": ["a.txt"]}')")" \
    "$(AFTER='{"codex": 2}' turn "$(tool claude reserve_paths '{"paths": ["b.txt"], "wait_seconds": 1}')")" \
    "$(AFTER='{"codex": 3}' turn "$(tool claude get_status '{}')")" "$(turn "$(tool claude release_paths '{"paths": ["a.txt"]}')")" \
    "$(AFTER='{"codex": 6}' turn "$(tool claude wait_for_events '{"kinds": ["lease"], "timeout_seconds": 45}')")" "$(turn "$(tool claude leave '{}')")" "$done_turn" "$done_turn")" \
    codex "$(turns "$(AFTER='{"claude": 2}' turn "$(tool codex reserve_paths '{"paths": ["b.txt"]}')")" \
    "$(AFTER='{"claude": 3}' turn "$(tool codex reserve_paths '{"paths": ["a.txt"], "wait_seconds": 1}')")" \
    "$(turn "$(tool codex wait_for_events '{"kinds": ["lease"], "timeout_seconds": 45}')")" \
    "$(turn "$(write codex a.txt mine)")" "$(turn "$(tool codex leave '{}')")" "$done_turn")"

agent claude claude &
claude=$!
agent codex codex
wait "$claude"
ring="a deadlock: claude waits for b.txt of codex, codex waits for a.txt of claude"
told codex "$ring; claude should release a.txt" || fail "codex was not told of the ring"
told claude "$ring; you should release a.txt" || fail "claude was not told of the ring"
told claude "your waiting request was granted: b.txt" || fail "claude did not get its file"
[ "$(cat a.txt)" = mine ] || fail "codex did not edit the file that it waited for"
[ "$(count_events DeadlockDetected)" = 1 ] || fail "the ring was named $(count_events DeadlockDetected) times"
judge
