#!/bin/sh
# Unpack what a Python needs into the directory $1, from the packages of the Debian 12 this runs on, as root.
#
# The packages are unpacked and not installed: no script of theirs is run, and none of them is there to be run later.
# What each of them was is kept in var/lib/dpkg/status.d, where scanners of images look for it.
set -eu

root=$1
version=3.11
# The interpreter, its library, and the shared objects that the parts of it load which the service uses. Left out are
# those of curses, readline, dbm, sqlite3, nis and tkinter: importing them fails.
packages="
    python$version-minimal libpython$version-minimal libpython$version-stdlib
    libc6 libgcc-s1 zlib1g libexpat1 libssl3 libffi8 liblzma5 libbz2-1.0 libuuid1 libcrypt1
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

cd "$root"
# Manuals, examples and what only an installation needs; of usr/share/doc the licences stay.
find usr/share/doc -type f ! -name copyright -delete
find usr/share -mindepth 1 -maxdepth 1 ! -name doc ! -name ca-certificates ! -name zoneinfo -exec rm -rf {} +
rm -rf usr/sbin sbin usr/lib/python3 var/lib/dpkg/info etc/ca-certificates usr/lib/*/gconv usr/lib/*/audit
find usr/bin ! -type d ! -name "python$version" -delete
ln -s "python$version" usr/bin/python3
# What no service imports: Python's own tests, its help pages, its converter from Python 2, and what needs objects that are
# left out.
(cd "usr/lib/python$version" && rm -rf test pydoc_data lib2to3 curses dbm sqlite3)
# The authorities as Debian ships them, without any that this machine has added for itself.
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
# The image must start with these alone; a library that is missing is to be seen now.
chroot . /usr/bin/python3 -I -c 'import asyncio, bz2, ctypes, ssl, uuid, zlib, zoneinfo; ssl.create_default_context()'
