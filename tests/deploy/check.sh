#!/bin/sh
# `make check NAME=deploy`: check the Dockerfile, the manifests, the alerts and the compose file, as far as possible without a cluster.
# $1 is the bin directory of the environment that the service was installed into, $2 that of locks/tools.txt,
# $3 a directory to write to.
set -eu

service=$1
bin=$2
mkdir -p "$3"
out=$(cd "$3" && pwd)
versions="1.31 1.34 1.37"

fail() {
    echo "$1" >&2
    exit 1
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

# kubectl includes kustomize; the version in Debian 12 is from 2021 and cannot read these files.
if command -v kustomize >/dev/null; then
    kustomize="kustomize build"
elif command -v kubectl >/dev/null; then
    kustomize="kubectl kustomize"
else
    fail "deploy/redis is rendered by kustomize, and there is none: install kustomize, or kubectl 1.27 or later."
fi

# promtool and amtool are in Debian's packages prometheus and prometheus-alertmanager, which are unpacked but not installed, so
# that no server is started.
unpacked() {
    found=$(command -v "$1" || true)
    if [ -z "$found" ]; then
        found=$out/$2/usr/bin/$1
        if [ ! -x "$found" ]; then
            command -v apt-get >/dev/null || fail "The alerts are checked by $1, and there is none: install $2."
            echo "unpacking the package $2 for its $1" >&2
            rm -rf "${out:?}/$2"
            mkdir -p "$out/$2"
            (cd "$out/$2" && { apt-get download -qq "$2" 2>/dev/null || { as_root apt-get update -qq && apt-get download -qq "$2"; }; } && dpkg-deb -x ./*.deb .)
        fi
    fi
    echo "$found"
}
promtool=$(unpacked promtool prometheus)
amtool=$(unpacked amtool prometheus-alertmanager)

# `config` needs no daemon. Compose 1.29, Debian's version, supports everything in the file except its name.
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

unpinned=$(sh deploy/image/pin.sh --check) || echo "not pinned by digest, see deploy/image/pin.sh:" $unpinned >&2

"$bin/hadolint" --config .hadolint.yaml Dockerfile
echo "hadolint finds nothing"

# The image can be built for arm64, as far as that can be said without one: its packages have wheels.
python=$(sed -n 's/^version=//p' deploy/image/system.sh)
"$bin/python" -m pip install --quiet --disable-pip-version-check --dry-run --target "$out/arm64" --no-deps --require-hashes \
    --only-binary :all: --implementation cp --python-version "$python" --platform manylinux_2_28_aarch64 \
    --platform manylinux_2_17_aarch64 --platform manylinux2014_aarch64 -r locks/service.txt ||
    fail "A package of the image has no wheel for arm64."
echo "the packages of the image have wheels for arm64"

chart=deploy/helm/robots-decisions
"$promtool" check rules $chart/files/alerts.yaml
(cd tests/deploy && "$promtool" test rules alerts_test.yaml)
"$bin/python" tests/deploy/queries.py <$chart/files/dashboard.json >"$out/queries.yaml"
"$promtool" check rules "$out/queries.yaml"
PYTHONPATH=. "$service/python" -m tests.deploy.exposition | "$promtool" check metrics
echo "promtool finds nothing against the names of the metrics"
mkdir -p "$out/prometheus-config"
cp deploy/compose/prometheus.yaml $chart/files/alerts.yaml "$out/prometheus-config"
"$promtool" check config "$out/prometheus-config/prometheus.yaml" >/dev/null
echo "prometheus.yaml can be read"
"$amtool" check-config deploy/monitoring/alertmanager.yaml >/dev/null
echo "alertmanager.yaml can be read"

helm=$(command -v helm || echo "$service/helm")
[ -x "$helm" ] || fail "The chart is rendered by Helm, which has no package for this platform: install Helm 3."
mkdir -p "$out/rendered"
rm -rf "$out/rendered"/*
chart() {
    name=$1 && shift
    "$helm" template robots-decisions $chart --kube-version 1.34.0 --namespace robots "$@" >"$out/rendered/$name.yaml" 2>"$out/output" ||
        { cat "$out/output" >&2; fail "The chart does not render $name."; }
}
chart dev --values $chart/values-dev.yaml
chart small --values $chart/values-dev.yaml --values $chart/values-small.yaml
chart prod --values $chart/values-prod.yaml
chart scale --values $chart/values-prod.yaml --set autoscaling.decisionsPerPod=5000,monitoring.scrapeAnnotations=true
# With every value that it has.
chart every-value --values tests/helm/every-value.yaml
for values in dev prod; do
    "$helm" lint --strict --quiet $chart --values $chart/values-$values.yaml >"$out/output" 2>&1 ||
        { cat "$out/output" >&2; fail "helm lint finds something."; }
done
$kustomize deploy/redis >"$out/rendered/redis.yaml"
# kustomize takes what the chart renders, as docs/how-to/kubernetes.md says. Policies are checked there, since only it has the
# namespace.
kustomized() {
    mkdir -p "$out/kustomize/$1"
    cp "$out/rendered/$1.yaml" "$out/kustomize/$1/robots-decisions.yaml"
    sed -n '/^# kustomization.yaml$/,/^```$/{/^```$/!p;}' docs/how-to/kubernetes.md >"$out/kustomize/$1/kustomization.yaml"
    $kustomize "$out/kustomize/$1" >"$out/policies/$1.yaml"
    grep -q "team: crawl" "$out/policies/$1.yaml" || fail "The kustomization of docs/how-to/kubernetes.md changes nothing."
}
rm -rf "$out/kustomize" "$out/policies" && mkdir -p "$out/policies"
chart dev-applied --skip-tests --values $chart/values-dev.yaml
chart prod-applied --skip-tests --values $chart/values-prod.yaml
kustomized dev-applied
kustomized prod-applied
cp "$out/rendered/redis.yaml" "$out/policies"
echo "the chart renders"

for version in $versions; do
    # Kubernetes has no schemas of the operator's own kinds, which are checked below, and of the Gateway API: expect
    # warnings about these, and no others.
    "$bin/kubernetes-validate" --strict --quiet -k "$version" "$out"/rendered/*.yaml "$out"/policies/*.yaml >"$out/output" 2>&1 ||
        { cat "$out/output" >&2; fail "A manifest is not valid for Kubernetes $version."; }
    if grep -v -E "for kind (PrometheusRule|ServiceMonitor|HTTPRoute) with" "$out/output" >&2; then
        fail "A manifest could not be checked for Kubernetes $version."
    fi
done
echo "the manifests are valid for Kubernetes $versions"
"$bin/python" tests/deploy/operator_objects.py "$out"/rendered/*.yaml
# Fields and values that the operator does not have are found.
for change in s/scrapeTimeout:/scrapeTimout:/ 's/interval: 15s/interval: 15 s/' 's/^\( *\)expr:/\1query:/' s/ServiceMonitor$/ServiceMonitors/; do
    sed "$change" "$out/rendered/prod.yaml" >"$out/wrong.yaml"
    if "$bin/python" tests/deploy/operator_objects.py "$out/wrong.yaml" >"$out/output"; then
        fail "The objects of the Prometheus Operator are accepted after $change."
    fi
done
echo "the objects of the Prometheus Operator are valid"
"$bin/checkov" --config-file .checkov.yaml --directory "$out/policies"
"$bin/checkov" --config-file .checkov.yaml --file Dockerfile
echo "checkov finds nothing"
