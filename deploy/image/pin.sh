#!/bin/sh
# `sh deploy/image/pin.sh`: pin third-party images by digest (`name:tag` becomes `name:tag@sha256:...`) in every file that names
# one; pinned images are updated to the current digest of their tag. Digests come from the registries, by skopeo or docker
# buildx. With --check, only print images that are not pinned, and exit with 1 if there are any.
set -eu

files="Dockerfile deploy/compose/compose.yaml deploy/helm/robots-decisions/values.yaml deploy/redis/valkey.yaml"
# The service's own image is not included: the value image.digest pins it, once it is pushed.
named() {
    # shellcheck disable=SC2086
    sed -n -E 's/^(ARG BASE=| *image: )([^ ]+:[^ ]+)$/\2/p' $files | sort -u
}

digest() {
    if command -v skopeo >/dev/null; then
        skopeo inspect --no-tags --format '{{.Digest}}' "docker://$1"
    else
        docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$1"
    fi
}

if [ "${1:-}" = --check ]; then
    named | grep -v '@sha256:' && exit 1
    exit 0
fi

# Get all digests before changing any file.
pins=$(named | while read -r image; do
    tagged=${image%@*}
    found=$(digest "$tagged")
    echo "$found" | grep -q -E '^sha256:[0-9a-f]{64}$' || { echo "no digest of $tagged: '$found'" >&2; exit 1; }
    echo "s|$image\$|$tagged@$found|"
done)
for file in $files; do
    sed -i "$pins" "$file"
done
named
