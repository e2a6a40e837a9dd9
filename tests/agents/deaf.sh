#!/bin/sh
# Reads nothing of what it is told: it works on with its input open, then closes it and works on.
echo "not listening"
exec 0<&-
echo "still here"
