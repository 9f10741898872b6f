#!/bin/sh
# Make the Debian 13 image $1 with debootstrap and buildah, as root, on machines without access to an image registry.
set -eu

name=$1
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
debootstrap --variant=minbase --include=ca-certificates trixie "$directory" "${MIRROR:-http://deb.debian.org/debian}" \
    >"$directory.log" 2>&1 || { cat "$directory.log" >&2; exit 1; }
rm -f "$directory.log"
# Add security fixes, and the machine's additional CA certificates, which a proxy may need.
echo "deb http://deb.debian.org/debian-security trixie-security main" >>"$directory/etc/apt/sources.list"
if ls /usr/local/share/ca-certificates/*.crt >/dev/null 2>&1; then
    cp /usr/local/share/ca-certificates/*.crt "$directory/usr/local/share/ca-certificates/"
    chroot "$directory" update-ca-certificates >/dev/null
fi
rm -rf "$directory/var/cache/apt/archives" "$directory/var/lib/apt/lists"
mkdir -p "$directory/var/cache/apt/archives/partial" "$directory/var/lib/apt/lists/partial"
container=$(buildah from scratch)
trap 'rm -rf "$directory"; buildah rm "$container" >/dev/null' EXIT
buildah copy -q "$container" "$directory" / >/dev/null
buildah config --cmd /bin/bash "$container"
buildah commit -q "$container" "$name" >/dev/null
