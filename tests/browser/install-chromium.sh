#!/bin/sh
# Find a Chromium for the browser tests, or install Debian's package of the one without windows, which takes half the CPU
# time of the other. Exits with 1 if neither works.
set -eu

lacking="No Chromium to test the page in"
advice="Install it, or set CHROMIUM to its binary."
for name in ${CHROMIUM:-chromium-headless-shell chromium chromium-browser google-chrome google-chrome-stable}; do
    if command -v "$name" >/dev/null; then
        exit 0
    fi
done
if [ -n "${CHROMIUM:-}" ]; then
    echo "$lacking: CHROMIUM is set to $CHROMIUM, which is not a command. $advice" >&2
    exit 1
fi
sh tests/install-packages.sh "$lacking" "$advice" chromium-headless-shell
