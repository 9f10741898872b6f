#!/bin/sh
# Find nginx and squid for the tests of the proxies, or install Debian's packages. Exits with 1 if neither works.
set -eu
PATH=$PATH:/usr/sbin

wanted=
for name in nginx squid; do
    command -v "$name" >/dev/null || wanted="$wanted $name"
done
if [ -n "$wanted" ]; then
    # shellcheck disable=SC2086
    sh tests/install-packages.sh "No nginx and squid to test the proxies with" "Install them." $wanted
fi
