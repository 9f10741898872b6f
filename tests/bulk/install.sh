#!/bin/sh
# Install a Java runtime for Spark, if there is none.
set -eu
command -v java >/dev/null && exit
[ "$(id -u)" = 0 ] || { echo "Spark needs Java 17: install Debian's openjdk-17-jre-headless" >&2; exit 1; }
apt-get update -qq && apt-get install -qq -y --no-install-recommends default-jre-headless >/dev/null
