#!/usr/bin/env bash
# Generates the Python code of contract/proto into DIR (default: where it is committed).
set -euo pipefail
cd "$(dirname "$0")"
out=${1:-src}
mkdir -p "$out"
rm -rf "$out/steerline"
mapfile -t protos < <(cd proto && find steerline -name '*.proto' | sort)
# Its plug-ins for Python are found by PATH.
PATH="$PWD/../.venv/bin:$PATH" python -m grpc_tools.protoc -I proto \
  --python_out="$out" --grpc_python_out="$out" --mypy_out="quiet:$out" --mypy_grpc_out="quiet:$out" \
  "${protos[@]}"
