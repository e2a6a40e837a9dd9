#!/bin/sh
# Reads what it is told to the end and says it back, with what its environment tells.
cat
echo "plan=$CREWLOG_PLAN task=$CREWLOG_TASK attempt=$CREWLOG_ATTEMPT answer=$CREWLOG_ANSWER"
echo "own=$OWN shared=$SHARED"
