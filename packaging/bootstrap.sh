#!/bin/bash
# Brings the machine to where the make targets can run. Safe to call again and again: it does only what is missing.
#
#   bootstrap.sh venv          .venv from requirements.lock (again when the lock file or the interpreter changed)
#   bootstrap.sh fuzz          Atheris into .venv, where there is one for this machine and Python; without it all goes on
#   bootstrap.sh release       build/release-tools, an environment of its own with what writes bills of materials
#   bootstrap.sh site          build/site-tools, likewise, with what makes the site of the documents
#   bootstrap.sh tools NAME    what tests and demo on the real kernel use; NAME is who asks, for the message
#   bootstrap.sh kubernetes NAME
#                              the same, and the programs of a real Kubernetes API server, unless the tests are to use
#                              one that TORTIE_TEST_KUBECONFIG leads to
#   bootstrap.sh runtimes NAME what `tools` and `kubernetes` find, and containerd and podman; tests say which they lack
#   bootstrap.sh cluster NAME  the same, and the programs of a Kubernetes with nodes
#   bootstrap.sh windows NAME  Wine, a compiler for Windows, and Maven's client, which fetches CPython for Windows
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

VENV=.venv
LOCK=requirements.lock
STAMP=$VENV/.tortie-stamp

say() { printf '== %s\n' "$*"; }
fail() {
    printf '\n!! %s\n' "$@" >&2
    exit 1
}

apt_install() { # package...
    [ "$(id -u)" = 0 ] || fail "missing Debian packages: $*. Install them, or run this as root."
    command -v apt-get >/dev/null || fail "missing: $* (Debian's names), and there is no apt-get to install them with."
    say "Installing Debian packages: $*"
    export DEBIAN_FRONTEND=noninteractive
    local install=(apt-get install -y -q -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=600 --no-install-recommends)
    "${install[@]}" "$@" || {
        say "Refreshing the package lists"
        apt-get update -q && "${install[@]}" "$@"
    } || fail "could not install: $*"
}

# A `python3` on PATH may be a version manager's shim; the environment is made with the interpreter behind it.
find_python() {
    command -v "${PYTHON:-python3}" >/dev/null || apt_install python3 >&2
    "${PYTHON:-python3}" -c '
import os, sys
if sys.version_info < (3, 11):
    sys.exit("Python 3.11 or later is needed; this is " + sys.version.split()[0] + " (choose another with PYTHON=...)")
print(os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable))'
}

make_venv() {
    local python wanted
    python=$(find_python) || fail "no usable Python."
    wanted="$("$python" -V) $python $(sha256sum <"$LOCK")"
    [ -x $VENV/bin/python ] && [ "$(cat $STAMP 2>/dev/null)" = "$wanted" ] && return 0

    if ! { [ -x $VENV/bin/python ] && [ "$($VENV/bin/python -V)" = "$("$python" -V)" ] &&
        $VENV/bin/python -m pip --version >/dev/null 2>&1; }; then
        "$python" -c 'import venv, ensurepip' 2>/dev/null || apt_install python3-venv
        say "Creating $VENV with $("$python" -V)"
        "$python" -m venv --clear $VENV
    fi
    # Not compiled: most of what is in these packages is never imported, and the rest is compiled when it is.
    say "Installing $(grep -c '^[A-Za-z0-9]' "$LOCK") pinned packages into $VENV (once; pip keeps its downloads)"
    $VENV/bin/python -m pip install --disable-pip-version-check --no-input --progress-bar off --no-compile --use-pep517 --require-hashes -r "$LOCK" |
        awk '/^Collecting / { printf "   [%d] %s\n", ++n, $2; fflush() }
             /^(Installing|Building|  Building|Successfully)/ { print "   " substr($0, 1, 100); fflush() }'
    printf '%s' "$wanted" >$STAMP
}

# A download of 35 MB that nothing but `make fuzz` uses, so it is not in requirements.lock. Without a network, or for a
# Python that it does not know yet, tests/fuzz/run.py has another way, and says so.
add_fuzzer() {
    local lock=tests/fuzz/requirements.lock stamp=$VENV/.tortie-fuzz-stamp wanted
    wanted="$(cat $STAMP) $(sha256sum <"$lock")"
    [ "$(cat $stamp 2>/dev/null)" = "$wanted" ] && return 0
    say "Installing Atheris into $VENV (once; pip keeps its download)"
    if $VENV/bin/python -m pip install --disable-pip-version-check --no-input -q --progress-bar off --no-compile --require-hashes --only-binary=:all: -r "$lock"; then
        printf '%s' "$wanted" >$stamp
    else
        say "NO ATHERIS for $($VENV/bin/python -V) on $(uname -m)"
    fi
}

# Apart from .venv: they share packages with it, in versions of their own.
add_apart() { # which lock in packaging, what it is for
    local lock=packaging/$1/requirements.lock tools=build/$1-tools wanted
    wanted="$($VENV/bin/python -V) $(sha256sum <"$lock")"
    [ "$(cat $tools/.stamp 2>/dev/null)" = "$wanted" ] && return 0
    say "Installing what $2 into $tools (once; pip keeps its downloads)"
    "$(find_python)" -m venv --clear --without-pip $tools
    $VENV/bin/python -m pip --python $tools/bin/python install --disable-pip-version-check --no-input -q --progress-bar off --no-compile --require-hashes --only-binary=:all: -r "$lock" ||
        fail "could not install $lock"
    printf '%s' "$wanted" >$tools/.stamp
}

# What tests/integration and the demo call from outside: ip, ping, ps, a compiler, the packet filter's commands, and the CNI
# project's plugins to delegate to and to compare with.
find_tools() { # who asks
    [ "$(id -u)" = 0 ] || fail "$1 NEEDS ROOT: it makes network namespaces and links. Nothing was run."
    local missing=()
    command -v ip >/dev/null || missing+=(iproute2)
    command -v ping >/dev/null || missing+=(iputils-ping)
    command -v ps >/dev/null || missing+=(procps)
    command -v openssl >/dev/null || missing+=(openssl)
    command -v iptables >/dev/null || missing+=(iptables)
    command -v nft >/dev/null || missing+=(nftables)
    command -v cc >/dev/null || missing+=(gcc libc6-dev)
    [ -x /usr/lib/cni/host-local ] || missing+=(containernetworking-plugins)
    [ ${#missing[@]} = 0 ] || apt_install "${missing[@]}"
}

# What packaging/executable/dist_runtime.py calls (it says itself what else it needs), and tests of the executable.
find_compiler() { # who asks
    local missing=()
    command -v gcc >/dev/null || missing+=(gcc)
    command -v make >/dev/null || missing+=(make)
    command -v dpkg-source >/dev/null || missing+=(dpkg-dev)
    command -v perl >/dev/null || missing+=(perl)
    command -v tclsh >/dev/null || missing+=(tcl)
    command -v strace >/dev/null || missing+=(strace)
    [ -d /usr/include/linux ] || missing+=(linux-libc-dev)
    [ ${#missing[@]} = 0 ] || {
        say "$1 needs a compiler and its like"
        apt_install "${missing[@]}"
    }
}

find_windows() { # who asks
    local missing=()
    command -v wine >/dev/null || missing+=(wine wine64)
    command -v x86_64-w64-mingw32-gcc >/dev/null || missing+=(gcc-mingw-w64-x86-64-win32)
    command -v mvn >/dev/null || missing+=(maven)
    [ ${#missing[@]} = 0 ] || {
        say "$1 needs Wine and its like"
        apt_install "${missing[@]}"
    }
}

# Without starting the services that the packages bring: tests run their own, in namespaces of their own.
find_runtimes() {
    local missing=()
    command -v containerd >/dev/null || missing+=(containerd)
    command -v runc >/dev/null || missing+=(runc)
    command -v podman >/dev/null || missing+=(podman)
    command -v busybox >/dev/null || missing+=(busybox-static)
    [ ${#missing[@]} = 0 ] || RUNLEVEL=1 apt_install "${missing[@]}"
}

case "${1:-}" in
venv) make_venv ;;
fuzz) add_fuzzer ;;
release) add_apart release "writes bills of materials" ;;
site) add_apart site "makes the site" ;;
tools) find_tools "${2:-this}" ;;
kubernetes)
    find_tools "${2:-this}"
    [ -n "${TORTIE_TEST_KUBECONFIG:-}" ] || packaging/apiserver.sh build
    ;;
runtimes | cluster)
    find_tools "${2:-this}"
    packaging/apiserver.sh build "${1/runtimes/}"
    find_runtimes
    ;;
compiler) find_compiler "${2:-this}" ;;
windows) find_windows "${2:-this}" ;;
*) fail "usage: bootstrap.sh venv | fuzz | release | site | tools NAME | kubernetes NAME | runtimes NAME | cluster NAME | compiler NAME | windows NAME" ;;
esac
