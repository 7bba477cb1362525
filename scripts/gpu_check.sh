#!/usr/bin/env bash
# Everything that needs a GPU, in one go: tests, compute-sanitizer on small inputs, timings.
#
#   scripts/gpu_check.sh OUT_DIR [BUILD_DIR] [STAGE...]
#
# BUILD_DIR holds a finished build (kcp and tests/); without it one is made in build/gpu. Stages:
# tests sanitizer timings top-k influence range (all by default). Writes OUT_DIR/*.json and *.md, and what was said into
# OUT_DIR/checks.log; exits non-zero when a check failed. KCP_DEVICE=cpu tries the script itself on a machine without a GPU.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=${1:?usage: scripts/gpu_check.sh OUT_DIR [BUILD_DIR] [STAGE...]}
build=${2:-}
shift $(($# < 2 ? $# : 2))
stages=${*:-tests sanitizer timings top-k influence range}
device=${KCP_DEVICE:-cuda}
failures=0
mkdir -p "$out"

if [ -z "$build" ]; then
  build=$root/build/gpu
  cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DKCP_CUDA=ON >"$out/build.log" &&
    cmake --build "$build" -j "$(nproc)" >>"$out/build.log" 2>&1 || { tail -20 "$out/build.log"; exit 1; }
fi
kcp=$build/kcp
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT

check() { # name, command...: runs it, notes failure
  local name=$1 started=$SECONDS
  shift
  if "$@" >"$data/log" 2>&1; then
    echo "ok      $name ($((SECONDS - started)) s)"
  else
    echo "FAILED  $name"
    tail -15 "$data/log"
    failures=$((failures + 1))
  fi
  { echo "==== $name"; cat "$data/log"; } >>"$out/checks.log"
}

# The tests with label gpu, through CTest, which names each by its full path: for a build folder that
# was moved here, a copy of its test lists is made that names the tests where they are now.
run_tests() {
  local lists=$build was
  was=$(sed -n 's/^# Build directory: //p' "$build/CTestTestfile.cmake")
  if [ "$was" != "$(realpath "$build")" ]; then
    lists=$data/lists
    mkdir -p "$lists/tests"
    for list in CTestTestfile.cmake tests/CTestTestfile.cmake; do
      sed "s|$was|$(realpath "$build")|g" "$build/$list" >"$lists/$list"
    done
  fi
  check ctest-gpu ctest --test-dir "$lists" -L gpu --output-on-failure --no-tests=error
}

# Every algorithm, buffer and kernel on a small input under memcheck, two of them under racecheck.
run_sanitizer() {
  "$kcp" gen bit 700 "$data/a.bin" --dims 3 --digits 4 --seed 1 --quiet
  "$kcp" gen bit 300 "$data/b.bin" --dims 3 --digits 4 --seed 2 --quiet
  awk 'BEGIN { print "id,x,y,weight"; for (i = 0; i < 60; ++i) print i "," i * 7 % 60 / 60 "," i * 11 % 60 / 60 "," 1 + i % 3 }' \
    >"$data/p.csv"
  head -30 "$data/p.csv" >"$data/q.csv"
  local query
  while read -r name query; do
    check "memcheck-$name" compute-sanitizer --tool memcheck --error-exitcode 9 --leak-check full \
      "$kcp" --device "$device" --quiet $query "$data/a.bin" "$data/b.bin"
  done <<QUERIES
dbf --algo dbf --k 20 --buffer list
dbf-plain --algo dbf --k 20 --kernel plain --buffer heap
dspp --algo dspp --k 20 --subpartitions 20 --buffer heap
dspp-plain --algo dspp --k 20 --kernel plain --order-d2 file
dspp-l1 --algo dspp --k 20 --metric l1
pea --algo dspp+pea --k 20 --d1-partition 200 --d2-partition 100 --streams 2 --points-per-thread 3
threshold --algo global-threshold --k 20
QUERIES
  for name in dbf dspp+pea global-threshold; do
    check "racecheck-$name" compute-sanitizer --tool racecheck --error-exitcode 9 \
      "$kcp" --device "$device" --quiet --algo $name --k 20 "$data/a.bin" "$data/b.bin"
  done
  run_sanitizer_on_values
  run_sanitizer_on_ranges_and_regions
}

# Every way to a top-k: by one block, by several, by sorted survivors.
run_sanitizer_on_values() {
  local name k tool
  "$kcp" gen-values duplicates 50000 "$data/v.f32" --seed 1 --quiet
  for name in sort bitonic select; do
    for k in 64 3000; do
      for tool in memcheck racecheck; do
        check "$tool-$name-$k" compute-sanitizer --tool $tool --error-exitcode 9 \
          "$kcp" --device "$device" --quiet --verify --algo $name --k $k "$data/v.f32"
      done
    done
  done
}

# Range joins and influence regions, a few of their variants.
run_sanitizer_on_ranges_and_regions() {
  local tool name query
  for tool in memcheck racecheck; do
    while read -r name query; do
      check "$tool-$name" compute-sanitizer --tool $tool --error-exitcode 9 \
        "$kcp" --device "$device" --quiet $query
    done <<QUERIES
range-brute --algo range-brute --eps 0.1 $data/a.bin
rt-hiss --algo rt-hiss --eps 0.1 --out $data/p.npy $data/a.bin $data/b.bin
rt-hiss-tensor --algo rt-hiss --eps 0.1 --refine tensor $data/a.bin
rt-hiss-paper --algo rt-hiss --eps 0.1 --refine shared-both --out $data/p.npy $data/a.bin $data/b.bin
rt-hiss-pairs --algo rt-hiss --eps 0.1 --refine shared-none --result pairs --kd-height max $data/a.bin
influence-sparse --algo influence-pairs --k 5 --grid 50x50 --domain 0,0,1,1 --list-areas $data/p.csv $data/q.csv
influence-pairs --algo influence-pairs --method pairs --k 5 --grid 50x50 --domain 0,0,1,1 --list-areas $data/p.csv $data/q.csv
QUERIES
  done
}

for stage in $stages; do
  case $stage in
    tests) run_tests ;;
    sanitizer) run_sanitizer ;;
    timings) check timings python3 "$root/scripts/gpu_timings.py" "$kcp" "$out" "$device" ;;
    top-k) check top_k python3 "$root/scripts/gpu_top_k.py" "$kcp" "$out" "$device" ;;
    influence) check influence python3 "$root/scripts/gpu_influence.py" "$kcp" "$out" "$device" ;;
    range) check range python3 "$root/scripts/gpu_range.py" "$kcp" "$out" "$device" ;;
    *) echo "no stage '$stage'"; exit 2 ;;
  esac
done
echo "$failures failed"
exit $((failures > 0))
