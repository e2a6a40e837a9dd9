# `crewlog doctor` finds all four programs installed, configured, trusted and refusing.
. "$here/crew.sh"
PATH="$AGENT_PROGRAMS/node_modules/.bin:$PATH"
if crewlog doctor >"$stage/doctor"; then fail "doctor finds nothing wrong before init"; fi
crewlog_init
crewlog doctor >"$stage/doctor" || fail "doctor after init: $(cat "$stage/doctor")"
crewlog init --remove >/dev/null
if crewlog doctor >"$stage/doctor"; then fail "doctor finds nothing wrong after init --remove"; fi
