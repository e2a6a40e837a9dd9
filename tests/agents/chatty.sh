#!/bin/sh
# Writes megabytes on both outputs at once, and ends with the line that it is given.
head -c 3000000 /dev/zero | tr "\0" e >&2 &
echo begin
head -c 3000000 /dev/zero | tr "\0" o
echo
wait
echo end of errors >&2
echo "$1"
