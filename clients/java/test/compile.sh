#!/bin/sh
# Compile the client and its tests with Jackson and JUnit 4 of Debian, into robots-decisions.jar and classes of the directory $1.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
out=$1
export JAVAC="javac -J-XX:TieredStopAtLevel=1 -J-XX:+UseSerialGC"
sh "$here/build.sh" "$out/robots-decisions.jar"
find "$here/test" -name "*.java" >"$out/sources"
$JAVAC -Xlint:all,-processing -Werror --release 17 -encoding UTF-8 -cp "$out/robots-decisions.jar:/usr/share/java/jackson-core.jar:/usr/share/java/junit4.jar" \
    -d "$out/classes" "@$out/sources"
