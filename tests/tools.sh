#!/bin/sh
# Run the tests that need more than the service and its libraries, tools.sh PYTEST-ARGUMENT... Those whose tools are missing
# and cannot be installed are left out, and named at the end.
set -eu

# TOOL_TESTS of tests/conftest.py, but for what a line below adds.
paths="tests/clients tests/docs/test_examples.py tests/wheel tests/core/test_core_wheel.py"
missing=

# need TARGET PATH COMMAND...: run the tests at PATH if the command succeeds; those of tests/clients are left out if it fails.
need() {
    target=$1 path=$2
    shift 2
    if "$@" >/dev/null; then
        paths="$paths $path"
    else
        paths="$paths --ignore=$path"
        missing="$missing $target"
    fi
}

need test-browser tests/browser sh tests/browser/install-chromium.sh
need test-helm tests/helm sh -c 'PATH=.venv/bin:$PATH command -v helm'
need test-upgrade tests/upgrade git cat-file -e "$(cat tests/upgrade/last-release)"
need test-proxies tests/proxies sh tests/proxies/install.sh
need test-javascript tests/clients/test_javascript.py command -v npm
need test-java tests/clients/test_java.py sh clients/java/test/install.sh

status=0
# shellcheck disable=SC2086
sh tests/run.sh "$@" $paths || status=$?
for target in $missing; do
    echo "Some tests did not run, since their tools are missing. Install them, then run: make $target" >&2
done
exit "$status"
