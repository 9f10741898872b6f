#!/bin/sh
# Compile the client with a JDK 17 or later, into build/java/robots-decisions.jar of the repository or the file $1.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
jar=${1:-$here/../../build/java/robots-decisions.jar}
mkdir -p "$(dirname "$jar")"
classes=$(mktemp -d)
trap 'rm -rf "$classes"' EXIT
${JAVAC:-javac} -Xlint:all -Werror --release 17 -encoding UTF-8 -d "$classes" "$here"/src/module-info.java "$here"/src/robotsdecisions/*.java
jar --create --file "$jar" -C "$classes" .
