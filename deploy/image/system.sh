#!/bin/sh
# Unpack the packages that Python needs into the directory $1, as root on Debian 13.
#
# The packages are unpacked, not installed: none of their scripts run, and none are in the image. Their metadata is stored
# in var/lib/dpkg/status.d, where image scanners look for it.
set -eu

root=$1
version=3.13
# The interpreter, its standard library, and the shared objects of the modules that the service uses. Those of curses,
# readline, dbm, sqlite3 and tkinter are left out: importing them fails.
packages="
    python$version-minimal libpython$version-minimal libpython$version-stdlib
    libc6 libgcc-s1 zlib1g libexpat1 libssl3t64 libzstd1 libffi8 liblzma5 libbz2-1.0 libuuid1
    ca-certificates media-types netbase tzdata"

export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends ca-certificates "python$version" >/dev/null
mkdir -p /build/packages "$root/var/lib/dpkg/status.d"
cd /build/packages
# shellcheck disable=SC2086
apt-get download -qq -o APT::Sandbox::User=root $packages
for package in *.deb; do
    dpkg-deb -x "$package" "$root"
    dpkg-deb -f "$package" >"$root/var/lib/dpkg/status.d/$(dpkg-deb -f "$package" Package)"
done
rm -rf /build/packages /var/lib/apt/lists/*
# The packages have their files below usr; Debian's own links lead there, among others to the loader of programs.
for directory in lib lib64; do
    [ ! -d "$root/usr/$directory" ] || [ -e "$root/$directory" ] || ln -s "usr/$directory" "$root/$directory"
done
# Scanners report the faults of packages only if they know the distribution and its release.
mkdir -p "$root/etc" "$root/usr/lib"
cp /usr/lib/os-release "$root/usr/lib/os-release"
ln -s ../usr/lib/os-release "$root/etc/os-release"
cp /etc/debian_version "$root/etc/debian_version"

cd "$root"
# Remove manuals, examples and installation files; keep the licences in usr/share/doc.
find usr/share/doc -type f ! -name copyright -delete
find usr/share -mindepth 1 -maxdepth 1 ! -name doc ! -name ca-certificates ! -name zoneinfo -exec rm -rf {} +
rm -rf usr/sbin sbin usr/lib/python3 var/lib/dpkg/info etc/ca-certificates usr/lib/*/gconv usr/lib/*/audit
find usr/bin ! -type d ! -name "python$version" -delete
ln -s "python$version" usr/bin/python3
# Remove modules that no service imports: Python's tests and help pages, and those whose shared objects are left out.
(cd "usr/lib/python$version" && rm -rf test pydoc_data curses dbm sqlite3)
# Debian's CA certificates, without those that this machine has added.
mkdir -p etc/ssl/certs
cat usr/share/ca-certificates/mozilla/*.crt >etc/ssl/certs/ca-certificates.crt
rm -rf usr/share/ca-certificates

echo 'root:x:0:0:root:/:/nonexistent
robots:x:65532:65532:robots:/nonexistent:/nonexistent' >etc/passwd
echo 'root:x:0:
robots:x:65532:' >etc/group
echo 'hosts: files dns' >etc/nsswitch.conf
mkdir -p tmp
chmod 1777 tmp

"python$version" -m compileall -q -j 0 --invalidation-mode unchecked-hash "usr/lib/python$version"
find . -type d -empty ! -path ./tmp -delete
# Fail now if a shared library is missing.
chroot . /usr/bin/python3 -I -c 'import asyncio, bz2, ctypes, ssl, uuid, zlib, zoneinfo; ssl.create_default_context()'
