#!/bin/sh
# `make check NAME=newest`: newest.sh PYTHON MAKE. With the newest Python of this machine, compile the core and run a
# short sweep: the rows that every dialect must pass, and questions to a service. Says so if PYTHON, which the other
# tests run with, is the newest.
set -eu

usual=$1
make=$2

version() {
    "$1" -c 'import sys; print("%d.%02d.%02d" % sys.version_info[:3] if sys.version_info.releaselevel == "final" else "0")' 2>/dev/null ||
        echo 0
}

# Pythons by their names on PATH, and those of pyenv, whose shims run only the chosen ones.
newest=$usual
for directory in $(echo "$PATH" | tr : ' ') "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin; do
    for python in "$directory"/python3.[0-9]*; do
        case $python in *-config | *[*]) continue ;; esac
        best=$(printf '%s\n' "$(version "$newest")" "$(version "$python")" | sort | tail -n 1)
        [ "$best" = "$(version "$newest")" ] || newest=$python
    done
done
minor() { version "$1" | cut -d. -f1,2; }
if [ "$(minor "$newest")" = "$(minor "$usual")" ]; then
    echo "No Python on this machine is newer than the one that the other tests run with: $(version "$usual")." >&2
    exit 0
fi

venv=build/newest
[ "$(cat $venv/.python 2>/dev/null)" = "$newest" ] || rm -rf $venv
"$make" --silent VENV=$venv PYTHON="$newest" $venv/.service
echo "$newest" >$venv/.python
$venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r locks/dev.txt
$venv/bin/python -m pytest -q -o cache_dir=$venv/.pytest tests/robots/test_verdicts.py tests/robots/test_rates.py \
    tests/robots/test_spec_tables.py tests/robots/test_user_agents.py \
    "tests/faults/test_ending.py::test_service_starts_without_a_store_and_uses_it_later"
