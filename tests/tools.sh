#!/bin/sh
# Run the tests that need more than the service and its libraries, tools.sh PYTEST-ARGUMENT... Those whose tools are missing
# and cannot be installed are left out, and named at the end. With AREA=browser, only tests/browser.
set -eu

# TOOL_TESTS of tests/conftest.py, but for what a line below adds.
paths="tests/clients tests/docs/test_examples.py tests/wheel tests/core/test_core_wheel.py"
[ -z "${AREA:-}" ] || paths="tests/$AREA"
missing=

# need PATH COMMAND...: run the tests at PATH if the command succeeds; those of tests/clients are left out if it fails.
need() {
    path=$1
    shift
    [ -z "${AREA:-}" ] || [ "tests/$AREA" = "$path" ] || return 0
    if "$@" >/dev/null; then
        [ -n "${AREA:-}" ] || paths="$paths $path"
    else
        paths="$paths --ignore=$path"
        missing="$missing $path"
    fi
}

need tests/browser sh tests/browser/install-chromium.sh
need tests/codemirror sh -c "command -v npm && make --silent deploy/codemirror/node_modules/.package-lock.json"
need tests/helm sh -c 'PATH=.venv/bin:$PATH command -v helm'
need tests/upgrade git cat-file -e "$(cat tests/upgrade/last-release)"
need tests/proxies sh tests/proxies/install.sh
npm_packages="command -v npm && make --silent clients/javascript/node_modules/.package-lock.json"
need tests/clients/test_javascript.py sh -c "$npm_packages && sh tests/browser/install-chromium.sh"
need tests/clients/test_generated_typescript.py sh -c "$npm_packages"
need tests/clients/test_verifiers.py sh -c "$npm_packages"
need tests/clients/test_playwright.py sh tests/browser/install-chromium.sh
need tests/clients/test_java.py sh clients/java/test/install.sh

status=0
# shellcheck disable=SC2086
sh tests/run.sh "$@" $paths || status=$?
for path in $missing; do
    echo "$path did not run, since its tools are missing." >&2
done
exit "$status"
