#!/usr/bin/env bash
# Builds and runs all tests that need no GPU, installing what is missing: layout, sanitizers, fuzz
# targets, and last the release build (every CUDA kernel compiled where nvcc is there). Ends with
# the summary of the test runner; any failure is a non-zero exit.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

fuzz_seconds=${KCP_FUZZ_SECONDS:-10}
export CTEST_OUTPUT_ON_FAILURE=1
# Tests share the cores: threads that wait must not spin.
export OMP_WAIT_POLICY=passive

# Other versions lay out some lines in another way.
check_layout() {
  local formatter file wrong=()
  formatter=$(command -v clang-format-14 || command -v clang-format || true)
  if [ -z "$formatter" ] || ! "$formatter" --version | grep -q 'version 14\.'; then
    if ! apt-cache show clang-format-14 >/dev/null 2>&1; then
      echo "skipped: needs clang-format 14"
      return
    fi
    install_packages clang-format-14
    formatter=clang-format-14
  fi
  while IFS= read -r file; do
    "$formatter" --dry-run --Werror "$file" >/dev/null 2>&1 || wrong+=("$file")
  done < <(find include src kernels tests -name '*.[ch]' -o -name '*.cu' -o -name '*.cuh')
  if [ ${#wrong[@]} -gt 0 ]; then fail "clang-format -i is needed on: ${wrong[*]}"; fi
}

run_fuzz_targets() {
  local folder=$1 target name seeds inputs found=0
  for target in "$folder"/tests/fuzz_*; do
    if [ ! -f "$target" ] || [ ! -x "$target" ]; then continue; fi
    found=1
    name=$(basename "$target")
    seeds=$root/tests/fuzz/corpus/${name#fuzz_}
    if [ ! -d "$seeds" ]; then seeds=; fi
    mkdir -p "$folder/corpus/$name"
    if ! (cd "$folder" && "$target" -max_total_time="$fuzz_seconds" -timeout=10 -rss_limit_mb=4096 \
      -print_final_stats=1 "corpus/$name" ${seeds:+"$seeds"}) >"$folder/$name.log" 2>&1 </dev/null; then
      tail -n 60 "$folder/$name.log" >&2
      fail "$name found an input that fails: see $folder/$name.log"
    fi
    inputs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$folder/$name.log")
    echo "$name: $inputs inputs in $fuzz_seconds s"
  done
  if [ $found -eq 0 ]; then fail "no fuzz target was built"; fi
}

cd "$root"
require_tools
require_test_tools

stage "layout"
check_layout

stage "AddressSanitizer and UndefinedBehaviorSanitizer"
configure_and_build "$root/build/test-sanitize" --preset sanitize
ctest --test-dir build/test-sanitize -L cpu --no-tests=error --parallel "$jobs"

stage "fuzz targets"
configure_and_build "$root/build/test-fuzz" --preset fuzz
run_fuzz_targets "$root/build/test-fuzz"

cuda=(-DKCP_CUDA=OFF)
nvcc=$(nvcc_path)
if [ -n "$nvcc" ]; then
  cuda=(-DKCP_CUDA=ON -DCMAKE_CUDA_COMPILER="$nvcc" -DCMAKE_CUDA_ARCHITECTURES=90)
fi
stage "release build, ${cuda[0]#-D}"
configure_and_build "$root/build/test-release" --preset release "${cuda[@]}"
exec ctest --test-dir build/test-release -L cpu --no-tests=error
