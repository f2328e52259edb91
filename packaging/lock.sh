#!/bin/bash
# Writes requirements.lock: every dependency of every extra, pinned with hashes, for all supported Pythons and machines.
# Pins that still satisfy pyproject.toml stay, unless UPGRADE=1.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools=build/lock-tools
[ -x $tools/bin/uv ] || {
    echo "== Installing uv into $tools"
    "${PYTHON:-python3}" -m venv $tools
    $tools/bin/python -m pip install --disable-pip-version-check --no-input -q uv
}
echo "== Resolving"
$tools/bin/uv pip compile --universal --generate-hashes --python-version 3.11 --all-extras \
    --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" -q \
    ${UPGRADE:+--upgrade} pyproject.toml -o requirements.lock
echo "== requirements.lock pins $(grep -c '^[A-Za-z0-9]' requirements.lock) packages"
