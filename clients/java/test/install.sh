#!/bin/sh
# Find a JDK 17 or later and JUnit 4 for the tests, or install Debian's packages. Exits with 1 if neither works.
set -eu

wanted=
command -v javac >/dev/null || wanted="default-jdk-headless"
[ -e /usr/share/java/junit4.jar ] || wanted="$wanted junit4"
if [ -n "$wanted" ]; then
    # shellcheck disable=SC2086
    sh tests/install-packages.sh "No JDK and JUnit to test the Java client with" "Install them." $wanted
fi
