#!/bin/sh
# Copy the service and its tests into the directory $1, without compiled modules, to compile them with other flags:
# the service runs on those built in place.
set -eu

here=$(pwd)
rm -rf "$1"
mkdir -p "$1/build"
cp -Rp app core tests pyproject.toml "$1"
rm -rf "$1/core/build"
find "$1/core" -name "*.so" -delete
ln -s "$here/build/corpus" "$1/build/corpus"
