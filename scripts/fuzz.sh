#!/usr/bin/env bash
# Runs a fuzz target: `bash scripts/fuzz.sh machine 600` for ten minutes; without
# an argument, all of them for a minute each. Further arguments go to libFuzzer.
#
# Needs the nightly toolchain and a C++ compiler; installs cargo-fuzz, should that
# be missing. What it finds on the way is kept in target/fuzz-corpus/, what fails
# in target/fuzz-artifacts/: a seed that shows something worth keeping goes to
# fuzz/corpus/<target>/ with a name that says what it is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! cargo fuzz --version >/dev/null 2>&1; then
  cargo install cargo-fuzz --locked
fi

seconds=${2:-60}
targets=${1:-range_set machine answers layout text lock}
for target in $targets; do
  found=target/fuzz-corpus/$target
  failed=target/fuzz-artifacts/$target
  mkdir -p "$found" "$failed"
  # The crate has no unsafe code, so the address sanitizer would only slow it
  # down; overflows and debug assertions are checked.
  cargo +nightly fuzz run --sanitizer none "$target" \
    "$found" "fuzz/corpus/$target" -- \
    -max_total_time="$seconds" -artifact_prefix="$failed/" -print_final_stats=1 "${@:3}"
done
