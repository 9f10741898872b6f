#!/bin/sh
# Find nginx for the tests of the proxies, or install Debian's package. Exits with 1 if neither works.
set -eu
PATH=$PATH:/usr/sbin

if ! command -v nginx >/dev/null; then
    sh tests/install-packages.sh "No nginx to test the proxies with" "Install it." nginx
fi
