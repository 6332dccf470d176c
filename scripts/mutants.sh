#!/usr/bin/env bash
# Mutants of the pure core, one after another: `bash scripts/mutants.sh`; of the
# locks: `bash scripts/mutants.sh lock`. Further arguments go to `cargo mutants`:
#
#   bash scripts/mutants.sh --list                  # what there is
#   bash scripts/mutants.sh --shard 0/8             # an eighth of it
#   bash scripts/mutants.sh -F 'Verify::step'       # one function
#   bash scripts/mutants.sh --iterate               # only what was missed before
#   bash scripts/mutants.sh lock -F src/lock/url.rs # one file of the locks
#
# What is mutated and which tests run is in .cargo/mutants.toml, for the locks in
# .cargo/mutants-lock.toml; survivors that are no fault of the tests are in
# tests/mutants.md. The result is in mutants.out/.
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

config=.cargo/mutants.toml
if [ "${1-}" = lock ]; then
  config=.cargo/mutants-lock.toml
  shift
fi

cargo mutants --no-shuffle --config "$config" "$@"
