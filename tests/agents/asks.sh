#!/bin/sh
# Cannot go on without a colour, unless the answers that it is told have one.
if colour=$(grep -e "-> " | sed "s/.*-> //") && [ -n "$colour" ]; then
    echo "painted it $colour"
else
    echo "I have looked at the wall."
    echo "QUESTION: Which colour is it to be?"
    echo
fi
