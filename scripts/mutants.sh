#!/usr/bin/env bash
# Mutants of the pure core, one after another: `bash scripts/mutants.sh`.
# Arguments go to `cargo mutants`:
#
#   bash scripts/mutants.sh --list                  # what there is
#   bash scripts/mutants.sh --shard 0/8             # an eighth of it
#   bash scripts/mutants.sh -F 'Verify::step'       # one function
#   bash scripts/mutants.sh --iterate               # only what was missed before
#
# What is mutated and which tests run is in .cargo/mutants.toml; survivors that
# are no fault of the tests are in tests/mutants.md. The result is in
# mutants.out/.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! cargo mutants --version >/dev/null 2>&1; then
  cargo install cargo-mutants --locked
fi

# Few cases, always the same ones, and no time spent on shrinking.
export PROPTEST_CASES=${PROPTEST_CASES:-64}
export PROPTEST_RNG_SEED=${PROPTEST_RNG_SEED:-1}
export PROPTEST_MAX_SHRINK_ITERS=0
export PROPTEST_DISABLE_FAILURE_PERSISTENCE=1

cargo mutants --no-shuffle "$@"
