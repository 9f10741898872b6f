#!/bin/sh
# A copy of the service and its tests in the directory $1, without what is compiled, for who wants it compiled in another
# way: what is built in place is what the service runs on.
set -eu

here=$(pwd)
rm -rf "$1"
mkdir -p "$1/build"
cp -Rp app tests setup.py pyproject.toml README.md LICENSE "$1"
find "$1/app" -name "*.so" -delete
ln -s "$here/build/corpus" "$1/build/corpus"
