#!/usr/bin/env bash
# Runs all tests, having installed what they need: `bash scripts/test.sh`.
# Arguments go to `cargo nextest run` (then doc tests are left out), so
# `bash scripts/test.sh range::` runs only the tests with that in their names.
#
# Needs the Rust toolchain and Python with pip; installs nothing outside
# target/ but, should they be missing, cargo-nextest and what
# scripts/install-etcd.sh says.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bash scripts/install-etcd.sh

if ! cargo nextest --version >/dev/null 2>&1; then
  cargo install cargo-nextest --locked
fi

# A gRPC server that shares no code with ours, for the tests of the client, and a
# server that speaks S3, for those of the locks.
venv=${CARGO_TARGET_DIR:-target}/test-python
if ! "$venv/bin/python" -c 'import grpc, moto.server' >/dev/null 2>&1; then
  pip=("$venv/bin/python" -m pip)
  if ! python3 -m venv --clear "$venv" >/dev/null 2>&1; then
    # Some systems pack what puts pip there apart (python3-venv); the pip outside
    # can do it, too.
    python3 -m venv --clear --without-pip "$venv"
    pip=(python3 -m pip --python "$venv/bin/python")
  fi
  "${pip[@]}" install --quiet grpcio 'moto[s3,server]>=5.1'
fi
SNAPSHOT_PREPARE_TEST_PYTHON=$(cd "$venv/bin" && pwd)/python
export SNAPSHOT_PREPARE_TEST_PYTHON

cargo nextest run --all-features "$@"
if [ $# -eq 0 ]; then
  cargo test --quiet --all-features --doc
fi
