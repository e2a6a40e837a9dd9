#!/bin/sh
# Works on files where it is started.
echo "made by an agent" > made
ls
