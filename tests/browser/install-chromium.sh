#!/bin/sh
# See to it that there is a Chromium to test the page in: one that is found, or else the package of Debian.
set -eu

missing() {
    echo "The page is tested in Chromium, and there is none: $1. Install it, or name its binary in CHROMIUM." >&2
    exit 1
}

for name in ${CHROMIUM:-chromium chromium-browser google-chrome google-chrome-stable}; do
    if command -v "$name" >/dev/null; then
        exit 0
    fi
done
if [ -n "${CHROMIUM:-}" ]; then
    missing "CHROMIUM names $CHROMIUM, which cannot be run"
fi
if ! command -v apt-get >/dev/null; then
    missing "there is no apt-get to install the package chromium with"
fi
if [ "$(id -u)" -eq 0 ]; then
    as_root=
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root="sudo -n"
else
    missing "to install the package chromium takes root, or a sudo that asks no password"
fi
echo "installing the package chromium" >&2
# shellcheck disable=SC2086
$as_root apt-get update -qq || missing "apt-get update failed"
# shellcheck disable=SC2086
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null ||
    missing "apt-get could not install the package chromium"
