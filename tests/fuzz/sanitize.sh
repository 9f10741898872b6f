#!/bin/sh
# `make sanitize`: the core's tests, and then many bodies, on compiled modules in which AddressSanitizer and
# UndefinedBehaviorSanitizer watch every access to memory and all arithmetic. The first mistake ends it, with a report.
# $1 is the bin directory of the environment with the tests' packages, $2 a directory to build in, $3 how many bodies.
set -eu

python=$(cd "$1" && pwd)/python
bodies=$3
sh tests/fuzz/tree.sh "$2"
cd "$2"
cp tests/fuzz/canary.pyx app/robots/compiled

# Signed overflow is watched only where it is not defined, and Python's own flags define it (-fwrapv). Undefined behaviour
# would only be told, and the process go on.
sanitizers="-fsanitize=address,undefined"
CFLAGS="$sanitizers -fno-sanitize-recover=all -fno-wrapv -fno-omit-frame-pointer -g" LDFLAGS="$sanitizers" \
    "$python" setup.py --quiet build_ext --inplace --parallel 2

# The runtime has to be there before the interpreter, and libstdc++ before it looks for what that throws with. Python's own
# allocator would hide from it where one block ends and the next begins. Python leaks by design when it ends.
compiler=${CC:-gcc}
watched() {
    LD_PRELOAD="$($compiler -print-file-name=libasan.so) $($compiler -print-file-name=libstdc++.so.6)" \
        PYTHONMALLOC=malloc PYTHONPATH=. CI=true \
        ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:malloc_context_size=3 \
        UBSAN_OPTIONS=print_stacktrace=1 \
        "$python" "$@"
}

# A sanitizer that is not at work finds nothing either.
finds() {
    if watched -c "from app.robots.compiled import canary; canary.$1" >canary.log 2>&1 || ! grep -q "$2" canary.log; then
        cat canary.log >&2
        echo "The sanitizers are not at work: canary.$1 has to end with '$2', and does not." >&2
        exit 1
    fi
}
finds "read_past_the_end(64)" "AddressSanitizer: heap-buffer-overflow"
finds "count_past_the_largest(2**31 - 1)" "runtime error: signed integer overflow"
echo "the sanitizers find what they are to find"

# A report is written past pytest, which would take it along when the process ends.
watched -m pytest -q -x --capture=sys -p no:cacheprovider -n 2 tests/robots
watched -m tests.fuzz.bodies "$bodies"
