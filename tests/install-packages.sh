#!/bin/sh
# Install Debian's packages without starting them: install-packages.sh LACKING ADVICE PACKAGE... If that does not work, say
# why between the sentences LACKING and ADVICE, and exit with 1.
set -eu

lacking=$1 advice=$2
shift 2

missing() {
    echo "$lacking: $1. $advice" >&2
    exit 1
}

if ! command -v apt-get >/dev/null; then
    missing "apt-get is missing, so the packages $* cannot be installed"
fi
if [ "$(id -u)" -eq 0 ]; then
    as_root=
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root="sudo -n"
else
    missing "installing the packages $* needs root or sudo without a password"
fi
# Debian starts what it installs, unless this script says that it must not.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' | $as_root sh -c "cat > $policy && chmod 755 $policy"
    # shellcheck disable=SC2064
    trap "$as_root rm -f $policy" EXIT
fi
echo "installing the packages $*" >&2
$as_root apt-get update -qq || missing "apt-get update failed"
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null ||
    missing "apt-get could not install the packages $*"
