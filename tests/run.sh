#!/bin/sh
# Run tests in several processes: run.sh PYTEST-ARGUMENT... A few tests that fail run once more, one at a time: they wait for
# processes and sockets, and a machine that is busy with others may keep them waiting too long. Both results are printed. A
# test that passes only then has a fault to mend (docs/contributing.md).
set -eu

pytest="$(dirname "$0")/../.venv/bin/python -m pytest"
failed=build/failed-tests

# Plugins of pytest, and what tests start, would be compiled anew in each process.
unset PYTHONDONTWRITEBYTECODE

mkdir -p build
# Tests wait much, so more processes than cores save time. The tests of a file run in one process, in the order of
# tests/conftest.py.
$pytest -n "${TEST_PROCESSES:-4}" --dist loadfile --no-loadscope-reorder -o cache_dir="$failed" --cache-clear "$@" && exit || status=$?
[ "$status" -eq 1 ] || exit "$status"
echo "The tests that failed run once more, one at a time."
exec $pytest -o cache_dir="$failed" --last-failed --maxfail=1 "$@" --dist no -n 0
