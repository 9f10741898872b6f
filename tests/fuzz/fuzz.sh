#!/bin/sh
# `make fuzz`: coverage-guided fuzzing of the core, of its compiled modules too, with AddressSanitizer in them.
# $1 is the bin directory of the environment with atheris, $2 a directory for the corpus and for failing inputs of the
# core; further arguments are for libFuzzer.
set -eu

python=$(cd "$1" && pwd)/python
mkdir -p "$2/corpus"
kept=$(cd "$2" && pwd)
shift 2
sh tests/fuzz/tree.sh "$kept/tree"
cd "$kept/tree"

# By CC and LDSHARED, since CFLAGS are given to the linker, too, which would bring in gcc's own runtime of AddressSanitizer:
# that of atheris, which has libFuzzer in it, is the one to use. It knows nothing of undefined behaviour, which therefore
# traps. Signed overflow is such only without -fwrapv, which Python's own flags have: so that one has to come after them.
compiler=${CC:-gcc}
$compiler -O2 -fPIC -c tests/fuzz/coverage.c -o build/coverage.o
watched="-fsanitize=address,undefined -fsanitize-undefined-trap-on-error -fsanitize-coverage=trace-pc,trace-cmp -g"
CC="$compiler $watched" LDSHARED="$compiler -shared $(pwd)/build/coverage.o" CFLAGS=-fno-wrapv \
    sh -c 'cd core && exec "$0" setup.py --quiet build_ext --inplace' "$python"

# Allocation stacks have one line, which saves more than half of the time. gcc's merged
# strings look like duplicate definitions to the runtime of atheris.
LD_PRELOAD=$("$python" -c 'import atheris; print(atheris.path())')/asan_with_fuzzer.so PYTHONMALLOC=malloc PYTHONPATH=.:core \
    ASAN_OPTIONS=detect_leaks=0:detect_odr_violation=0:allocator_may_return_null=1:malloc_context_size=1:quarantine_size_mb=16 \
    "$python" tests/fuzz/robots.py -artifact_prefix="$kept/" "$@" "$kept/corpus"
