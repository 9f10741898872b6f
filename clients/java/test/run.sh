#!/bin/sh
# Validate the POM, build the client, then run its tests with Jackson and JUnit 4 of Debian.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
libraries=/usr/share/java/jackson-core.jar:/usr/share/java/junit4.jar:/usr/share/java/hamcrest.jar
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
# All of these run for seconds: to optimize less takes a third of the CPU time away.
quick="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
export MAVEN_OPTS="$quick"
mvn --offline --quiet --file "$here/pom.xml" validate
sh "$here/test/compile.sh" "$out"
tests=$(cd "$here/test" && find . -name '*Test.java' | sed -e 's|^\./||' -e 's|/|.|g' -e 's|\.java$||' | sort)
cd "$here/../.."
# shellcheck disable=SC2086
java $quick -cp "$out/classes:$out/robots-decisions.jar:$libraries" org.junit.runner.JUnitCore $tests
