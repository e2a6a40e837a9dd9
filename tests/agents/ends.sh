#!/bin/sh
# Prints its second word and, as an error, its third, and exits with its first.
printf "%s\n" "$2"
printf "%s\n" "$3" >&2
exit "$1"
