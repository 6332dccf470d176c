#!/usr/bin/env bash
# A slice of the simulation: `bash scripts/simulate.sh [SEEDS]`, 1..3000 if none
# are given. Then compares what a debug and a release build did, over some seeds
# of each level: the same source has to do the same in every build.
#
# Builds what it needs; with all features that wants protoc, which
# `bash scripts/install-etcd.sh protoc` installs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seeds=${1:-1..3000}
compared=${COMPARED_SEEDS:-1..200}

cargo build --locked --all-features --bin snapshot-prepare
cargo build --locked --release --features cli --bin snapshot-prepare
debug=${CARGO_TARGET_DIR:-target}/debug/snapshot-prepare
release=${CARGO_TARGET_DIR:-target}/release/snapshot-prepare

for level in light heavy; do
  "$release" simulate --faults "$level" --seeds "$seeds"
done

# Prints the hash of all runs of a level.
hash_of() {
  "$1" simulate --faults "$2" --seeds "$compared" --output json |
    sed -n 's/.*"hash":"\([0-9a-f]\{16\}\)".*/\1/p'
}

for level in none light heavy; do
  of_debug=$(hash_of "$debug" "$level")
  of_release=$(hash_of "$release" "$level")
  echo "seeds $compared, faults $level: debug $of_debug, release $of_release"
  if [ -z "$of_debug" ] || [ "$of_debug" != "$of_release" ]; then
    echo "the debug and the release build do not do the same" >&2
    exit 1
  fi
done
