#!/bin/sh
# The core stays small enough to be held in the head: so many lines are compiled, and so many are there in all.
set -eu

compiled=$(cat app/robots/_native/*.pyx app/robots/_native/*.h | wc -l)
all=$(find app/robots -type f ! -name "*.so" ! -name "*.pyc" -exec cat {} + | wc -l)
echo "the core has $all lines (4000 at most), $compiled of them compiled (1000 at most)"
test "$compiled" -le 1000 && test "$all" -le 4000
