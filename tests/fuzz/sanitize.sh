#!/bin/sh
# `make sanitize`: tests of the core, random files and a stress of threads, on compiled modules in which AddressSanitizer
# and UndefinedBehaviorSanitizer watch every access to memory and all arithmetic. The first mistake ends it with a report.
# $1: the bin directory of the environment that has the packages of the tests; $2: a directory to build in; $3: how many
# files, and 1 round of threads for 100 of them; the rest: which tests.
set -eu

python=$(cd "$1" && pwd)/python
build=$2
bodies=$3
shift 3
sh tests/fuzz/tree.sh "$build"
cd "$build"
cp tests/fuzz/canary.pyx core/robots_core/robots/_native

# Python's own flags define signed overflow (-fwrapv), and what is defined is not reported. Without
# -fno-sanitize-recover the process would continue after undefined behaviour.
sanitizers="-fsanitize=address,undefined"
CFLAGS="$sanitizers -fno-sanitize-recover=all -fno-wrapv -fno-omit-frame-pointer -g" LDFLAGS="$sanitizers" \
    sh -c 'cd core && exec "$0" setup.py --quiet build_ext --inplace' "$python"

# The runtime has to be loaded before the interpreter, and libstdc++ before the runtime looks for its functions. Python's
# own allocator would hide where one block ends and the next begins. Python leaks at exit by design.
compiler=${CC:-gcc}
watched() {
    LD_PRELOAD="$($compiler -print-file-name=libasan.so) $($compiler -print-file-name=libstdc++.so.6)" \
        PYTHONMALLOC=malloc PYTHONPATH=.:core CI=true \
        ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:malloc_context_size=3 \
        UBSAN_OPTIONS=print_stacktrace=1 \
        "$python" "$@"
}

# Check that the sanitizers are active.
finds() {
    if watched -c "from robots_core.robots._native import canary; canary.$1" >canary.log 2>&1 || ! grep -q "$2" canary.log; then
        cat canary.log >&2
        echo "The sanitizers are not at work: canary.$1 did not end with '$2'." >&2
        exit 1
    fi
}
finds "read_past_the_end(64)" "AddressSanitizer: heap-buffer-overflow"
finds "count_past_the_largest(2**31 - 1)" "runtime error: signed integer overflow"
echo "The sanitizers are at work."

watched -m tests.fuzz.bodies "$bodies"
watched -m tests.fuzz.threads $((bodies / 100))
# pytest must not capture file descriptors: a report would be lost with the process.
watched -m pytest -q -x --capture=sys -p no:cacheprovider -n 2 "$@"
