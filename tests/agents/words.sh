#!/bin/sh
# Says which words it was started with, and what stands on its standard input.
for word; do printf "<%s>\n" "$word"; done
echo "input=$(cat)"
