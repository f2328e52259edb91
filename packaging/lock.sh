#!/bin/bash
# Writes requirements.lock: every dependency of every extra, pinned with hashes, for all supported Pythons and machines.
# The extra `fuzz` has a lock of its own, tests/fuzz/requirements.lock: only `make fuzz` installs it, and it is large. So
# have `release` and `site`, packaging/{release,site}/requirements.lock: they are installed apart from all others.
# Pins that still satisfy pyproject.toml stay, unless UPGRADE=1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools=build/lock-tools
[ -x $tools/bin/uv ] || {
    echo "== Installing uv into $tools"
    "${PYTHON:-python3}" -m venv $tools
    $tools/bin/python -m pip install --disable-pip-version-check --no-input -q uv
}
compile() { # file to write, extra...
    local file=$1 && shift
    $tools/bin/uv pip compile --universal --generate-hashes --python-version 3.11 "${@/#/--extra=}" \
        --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" -q \
        ${UPGRADE:+--upgrade} pyproject.toml -o "$file"
    echo "== $file pins $(grep -c '^[A-Za-z0-9]' "$file") packages"
}

mapfile -t extras < <($tools/bin/python -c '
import tomllib
print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"], sep="\n")' | grep -vxE 'fuzz|release|site')
echo "== Resolving"
compile requirements.lock "${extras[@]}"
compile tests/fuzz/requirements.lock fuzz
compile packaging/release/requirements.lock release
compile packaging/site/requirements.lock site
