#!/bin/sh
# Find a Chromium to test the page in, or install the package of Debian. The status is 1 where neither works.
set -eu

missing() {
    echo "No Chromium to test the page in: $1. Install it, or set CHROMIUM to its binary." >&2
    exit 1
}

for name in ${CHROMIUM:-chromium chromium-browser google-chrome google-chrome-stable}; do
    if command -v "$name" >/dev/null; then
        exit 0
    fi
done
if [ -n "${CHROMIUM:-}" ]; then
    missing "CHROMIUM is set to $CHROMIUM, which is not a command"
fi
if ! command -v apt-get >/dev/null; then
    missing "apt-get is missing, so the package cannot be installed"
fi
if [ "$(id -u)" -eq 0 ]; then
    as_root=
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root="sudo -n"
else
    missing "installing the package needs root or sudo without a password"
fi
echo "installing the package chromium" >&2
# shellcheck disable=SC2086
$as_root apt-get update -qq || missing "apt-get update failed"
# shellcheck disable=SC2086
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null ||
    missing "apt-get could not install the package chromium"
