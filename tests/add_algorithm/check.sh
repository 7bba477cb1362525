#!/usr/bin/env bash
# check.sh SOURCE: follows docs/adding-an-algorithm.md in a copy of the tree: two files and a row. The
# algorithm must then be in kcp list, help, completion and bench, and give the answers of the others.
set -euo pipefail

source=$(realpath "$1")
here=$(dirname "$(realpath "$0")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() {
  echo "FAILED: $*"
  exit 1
}

mkdir "$scratch/tree"
cp -r "$source"/{CMakeLists.txt,CHANGELOG.md,README.md,LICENSE,cmake,include,src} "$scratch/tree"
cp "$here/nested_loop.h" "$scratch/tree/include/kcp/"
cp "$here/nested_loop.c" "$scratch/tree/src/cpu/"
table=$scratch/tree/src/algorithms.c
awk -v row="$(cat "$here/row.txt")" '/\.name = NULL}}/ && !done { print row; done = 1 } { print }' \
  "$source/src/algorithms.c" | sed '0,/#include "kcp\/pair_search.h"/s//#include "kcp\/nested_loop.h"\n&/' >"$table"

if ! { cmake -S "$scratch/tree" -B "$scratch/build" -DKCP_TESTS=OFF -DKCP_CUDA=OFF \
  -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O1 &&
  cmake --build "$scratch/build" --parallel "$(nproc)"; } >"$scratch/log" 2>&1; then
  grep -E -A 5 'error|Error' "$scratch/log" | head -n 30
  fail "the tree with one more algorithm does not build"
fi

kcp=$scratch/build/kcp
cd "$scratch"
"$kcp" list | grep -qE '^nested-loop .* cpu ' || fail "kcp list does not show nested-loop"
"$kcp" help nested-loop | grep -q 'Ranks every pair' || fail "kcp help does not tell of nested-loop"
grep -q nested-loop "$scratch/build/manual/kcp.bash" || fail "completion does not know nested-loop"

"$kcp" gen bit 500 D1.bin --quiet --digits 4
"$kcp" gen bit 300 D2.bin --quiet --digits 4 --seed 2
rows=0
for options in '--k 20,600' '--k 50 --metric l1,linf,lp:3' '--k 100 --max-distance 0.05,0.2'; do
  # shellcheck disable=SC2086 # the options are words
  "$kcp" bench --algo dbf,auto,nested-loop $options D1.bin D2.bin >rows.txt ||
    fail "another answer with $options: $(cat rows.txt)"
  rows=$((rows + $(grep -cE '^nested-loop .* yes$' rows.txt)))
done
"$kcp" bench --algo dbf,nested-loop --self --k 40 --verify D1.bin >rows.txt || fail "--self: $(cat rows.txt)"
rows=$((rows + $(grep -cE '^nested-loop .* yes$' rows.txt)))
[ "$rows" -eq 8 ] || fail "$rows of 8 answers were checked"
echo "nested-loop is in kcp list, and $rows answers are those of dbf"
