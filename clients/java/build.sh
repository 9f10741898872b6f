#!/bin/sh
# Compile the client with a JDK 17 or later, into build/java/robots-decisions.jar of the repository or the file $1.
# JACKSON is the jar of jackson-core, which is otherwise that of Debian's libjackson2-core-java.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
jar=${1:-$here/../../build/java/robots-decisions.jar}
jackson=${JACKSON:-/usr/share/java/jackson-core.jar}
if [ ! -e "$jackson" ]; then
    echo "There is no $jackson. Install libjackson2-core-java, or set JACKSON to the jar of jackson-core." >&2
    exit 1
fi
mkdir -p "$(dirname "$jar")"
classes=$(mktemp -d)
trap 'rm -rf "$classes"' EXIT
${JAVAC:-javac} -Xlint:all -Werror --release 17 -encoding UTF-8 -cp "$jackson" -d "$classes" "$here"/src/robotsdecisions/*.java
echo "Automatic-Module-Name: robotsdecisions" >"$classes/manifest"
jar --create --file "$jar" --manifest "$classes/manifest" -C "$classes" robotsdecisions
