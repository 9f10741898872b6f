#!/bin/sh
# Build the source distribution, and the wheel from what is in it, as an installer would: build.sh PYTHON DIRECTORY.
# PYTHON has the packages of `requires` in pyproject.toml; DIRECTORY gets both files.
set -eu

python=$1
mkdir -p "$2"
into=$(cd "$2" && pwd)
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# From a copy, so that nothing is written beside the sources.
mkdir "$work/source"
cp -R LICENSE MANIFEST.in README.md pyproject.toml setup.py robots_core "$work/source"
find "$work/source" \( -name "*.so" -o -name "*.c" -o -name __pycache__ \) -prune -exec rm -rf {} +
cd "$work/source"
"$python" -c "from setuptools.build_meta import build_sdist; build_sdist('$into')" >/dev/null
mkdir "$work/sdist"
tar -xzf "$into"/robots_core-*.tar.gz -C "$work/sdist" --strip-components 1
"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation -w "$into" "$work/sdist"
