#!/bin/sh
# `make pin-images`: pin the images that others make by their digests, `name:tag` becoming `name:tag@sha256:...`, in every
# file that names one; those that are pinned already go on to the digest that their tag has now. It asks the registries,
# by skopeo or by docker buildx. With --check, ask nothing, and end with 1 and their names if any is not pinned.
set -eu

files="Dockerfile deploy/compose/compose.yaml deploy/overlays/dev/valkey.yaml"
# Ours is not among them: an overlay pins it (`images: digest:`), once it has been pushed.
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

# All are learnt before any file is changed.
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
