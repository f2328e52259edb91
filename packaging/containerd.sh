#!/bin/bash
# Builds containerd 2 for tests, beside the older one that Debian has: from its module, at the version below.
#
#   containerd.sh find     print the folder of containerd, its shim and ctr; fails at once if one is missing
#   containerd.sh build    make them if they are missing; two minutes on two cores, once
#
# Invariant: what is in the cache, which is outside of the clone, is complete.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

VERSION=v2.4.2
PROGRAMS=(containerd containerd-shim-runc-v2 ctr)
PACKAGES=("${PROGRAMS[@]/%/@$VERSION}")
PACKAGES=("${PACKAGES[@]/#/github.com/containerd/containerd/v2/cmd/}")
FOLDER=${XDG_CACHE_HOME:-$HOME/.cache}/tortie/containerd/$VERSION-$(uname -m | sed 's/^x86_64$/amd64/; s/^aarch64$/arm64/')

complete() {
    local program
    for program in "${PROGRAMS[@]}"; do [ -x "$FOLDER/$program" ] || return 1; done
}

build() {
    complete && return 0
    mkdir -p "${FOLDER%/*}"
    exec 9>"$FOLDER.lock"
    flock 9
    complete && return 0
    local made
    made=$(mktemp -d "$FOLDER.XXXXXX")
    # shellcheck disable=SC2064
    trap "rm -rf '$made'" EXIT
    echo "== Building containerd $VERSION (two minutes on two idle cores)" >&2
    GOBIN=$made nice -n 5 packaging/apiserver.sh go install -ldflags='-s -w' \
        "${PACKAGES[@]}" 2>&1 | tail -n 20 >&2
    rm -rf "$FOLDER"
    mv "$made" "$FOLDER"
}

case "${1:-}" in
find) complete && echo "$FOLDER" || { echo "no containerd in $FOLDER: packaging/containerd.sh build makes it there" >&2 && exit 1; } ;;
build) build ;;
*) echo "usage: containerd.sh find | build" >&2 && exit 2 ;;
esac
