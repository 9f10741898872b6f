#!/bin/sh
# Find a JDK 17 or later, Jackson, JUnit 4 and Maven for the tests, or install Debian's packages. Exits with 1 if neither works.
set -eu

wanted=
command -v javac >/dev/null || wanted="default-jdk-headless"
[ -e /usr/share/java/jackson-core.jar ] || wanted="$wanted libjackson2-core-java"
[ -e /usr/share/java/junit4.jar ] || wanted="$wanted junit4"
command -v mvn >/dev/null || wanted="$wanted maven"
if [ -n "$wanted" ]; then
    # shellcheck disable=SC2086
    sh tests/install-packages.sh "No JDK, Jackson, JUnit and Maven to test the Java client with" "Install them." $wanted
fi
