#!/bin/sh
# Says through the pipe that it runs, and holds it, with a child, as long as they live.
exec 9>pipe
echo up >&9
echo begun
sleep 1000 &
wait
