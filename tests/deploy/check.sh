#!/bin/sh
# `make deploy-check`: what can be said of the Dockerfile, the manifests, the alerts and the compose file without a cluster.
# $1 is the bin directory of the environment that the service was installed into, $2 that of deploy/requirements-deploy.txt,
# $3 a directory to write to.
set -eu

service=$1
bin=$2
out=$(cd "$3" && pwd)
versions="1.31 1.34 1.37"

fail() {
    echo "$1" >&2
    exit 1
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

# kustomize is in kubectl. Debian 12's package of it is of 2021 and cannot read these files.
if command -v kustomize >/dev/null; then
    kustomize="kustomize build"
elif command -v kubectl >/dev/null; then
    kustomize="kubectl kustomize"
else
    fail "The overlays are rendered by kustomize, and there is none: install kustomize, or kubectl 1.27 or later."
fi

# promtool comes in Debian's package prometheus, which is unpacked and not installed: nobody wants the server started.
promtool=$(command -v promtool || true)
if [ -z "$promtool" ]; then
    promtool=$out/prometheus/usr/bin/promtool
    if [ ! -x "$promtool" ]; then
        command -v apt-get >/dev/null || fail "The alerts are tested by promtool, and there is none: install Prometheus."
        echo "unpacking the package prometheus for its promtool" >&2
        rm -rf "$out/prometheus"
        mkdir -p "$out/prometheus"
        cd "$out/prometheus"
        apt-get download -qq prometheus 2>/dev/null || { as_root apt-get update -qq && apt-get download -qq prometheus; }
        dpkg-deb -x ./*.deb .
        cd - >/dev/null
    fi
fi

# `config` needs no engine. Compose 1.29, which Debian has, knows all of the file but its name.
if docker compose version >/dev/null 2>&1; then
    docker compose -f deploy/compose/compose.yaml config --quiet
else
    if ! command -v docker-compose >/dev/null; then
        command -v apt-get >/dev/null || fail "The compose file is read by docker compose, and there is none: install it."
        echo "installing the package docker-compose" >&2
        as_root apt-get update -qq
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends docker-compose >/dev/null
    fi
    sed '/^name:/d' deploy/compose/compose.yaml | docker-compose -f - --project-directory deploy/compose config --quiet
fi
echo "compose.yaml can be read"

unpinned=$(sh deploy/image/pin.sh --check) || echo "not pinned by digest, see \`make pin-images\`:" $unpinned >&2

"$bin/hadolint" --config .hadolint.yaml Dockerfile
echo "hadolint finds nothing"

"$promtool" check rules deploy/monitoring/alerts.yaml
(cd deploy/monitoring && "$promtool" test rules alerts_test.yaml)
"$bin/python" tests/deploy/queries.py <deploy/monitoring/dashboard.json >"$out/queries.yaml"
"$promtool" check rules "$out/queries.yaml"
PYTHONPATH=. "$service/python" -m tests.deploy.exposition | "$promtool" check metrics
echo "promtool finds nothing against the names of the metrics"
mkdir -p "$out/prometheus-config"
cp deploy/compose/prometheus.yaml deploy/monitoring/alerts.yaml "$out/prometheus-config"
"$promtool" check config "$out/prometheus-config/prometheus.yaml" >/dev/null
echo "prometheus.yaml can be read"

mkdir -p "$out/rendered"
for overlay in deploy/overlays/*/; do
    name=$(basename "$overlay")
    $kustomize "$overlay" >"$out/rendered/$name.yaml"
    for version in $versions; do
        # Schemas of the operator's own kinds are not part of Kubernetes: of those two it warns, and of no other.
        "$bin/kubernetes-validate" --strict --quiet -k "$version" "$out/rendered/$name.yaml" >"$out/said" 2>&1 ||
            { cat "$out/said" >&2; fail "The overlay $name is not valid for Kubernetes $version."; }
        if grep -v -E "for kind (PrometheusRule|ServiceMonitor) with" "$out/said" >&2; then
            fail "The overlay $name could not be checked for Kubernetes $version."
        fi
    done
    echo "$name is valid for Kubernetes $versions"
done
"$bin/checkov" --config-file .checkov.yaml --directory "$out/rendered"
"$bin/checkov" --config-file .checkov.yaml --file Dockerfile
echo "checkov finds nothing"
