#!/bin/bash
# Writes *_pb2.py and *_pb2.pyi beside every adapters/*/*.proto. The compiler is older than the library on purpose:
# what it writes loads on every protobuf from 4.25 to 7, while newer ones write code for their own version and later.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools=build/proto-tools
[ -x $tools/bin/python ] || {
    echo "== Installing grpcio-tools into $tools"
    "${PYTHON:-python3}" -m venv $tools
    $tools/bin/python -m pip install --disable-pip-version-check --no-input -q --only-binary :all: grpcio-tools==1.62.3
}
$tools/bin/python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. adapters/*/*.proto
echo "== Made" adapters/*/*_pb2.py
