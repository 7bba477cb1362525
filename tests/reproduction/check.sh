#!/usr/bin/env bash
# check.sh KCP: the verdicts, and two small items through scripts/reproduce from start to page. Exits 77
# (skipped) where the script cannot make its environment (no network, or an older Python).
set -euo pipefail

kcp=$(realpath "$1")
here=$(dirname "$(realpath "$0")")
root=$(realpath "$here/../..")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() {
  echo "FAILED: $*"
  exit 1
}

if ! "$root/scripts/reproduce" list >"$scratch/list" 2>"$scratch/log"; then
  cat "$scratch/log"
  exit 77
fi
for name in table-{5,6,7,8} figure-{4,5,6,7,8,9,10,11} top-k rt-table-{3,4,5,6,7} rt-figure-{6,7,8,9,10} \
  influence-times influence-figure-{1,2,3}; do
  grep -qw -- "$name" "$scratch/list" || fail "reproduce list does not have $name"
done

python=$root/build/reproduce/venv/bin/python
PYTHONPATH=$root/scripts:$here "$python" -B -m unittest test_statements test_range_statements test_measure 2>"$scratch/log" ||
  { cat "$scratch/log"; fail "a verdict is wrong, or a configuration run in another way"; }

reproduce() { "$root/scripts/reproduce" "$@" --kcp "$kcp" --device cpu --runs 1 --warmup 0 --out "$scratch/out"; }
reproduce table-7 figure-11 top-k --scale 0.0005 >"$scratch/log" 2>&1 || { cat "$scratch/log"; fail "reproduce"; }
for file in README.md figure-9.{json,csv,md,png,svg} figure-11.{md,png,svg} top-k.{json,csv,md,png,svg}; do
  [ -s "$scratch/out/$file" ] || fail "no $file"
done
[ "$(wc -l <"$scratch/out/figure-9.csv")" -eq 71 ] || fail "figure-9.csv has not a row for each of 70 configurations"
[ "$(grep -c ',yes$' "$scratch/out/figure-9.csv")" -eq 63 ] || fail "not every answer of figure 9 was checked"
[ "$(grep -cE '\| (holds|does not hold) \|$' "$scratch/out/README.md")" -eq 11 ] || fail "not 11 verdicts"
if grep -q "$scratch" "$scratch"/out/*.json "$scratch"/out/*.md; then fail "results name folders of this machine"; fi

# What is there is not run again.
reproduce table-7 --scale 0.0005 >"$scratch/log" 2>&1 || { cat "$scratch/log"; fail "reproduce again"; }
grep -q 'json has 70 of 70 configurations' "$scratch/log" || fail "the second run began anew"

# Measured without an environment, shown with one.
reproduce top-k --scale 0.0005 --measure-only >"$scratch/log" 2>&1 || { cat "$scratch/log"; fail "--measure-only"; }
rm "$scratch/out/top-k.png"
reproduce page >"$scratch/log" 2>&1 || { cat "$scratch/log"; fail "reproduce page"; }
[ -s "$scratch/out/top-k.png" ] || fail "reproduce page made no plot"

# Vectors, sites and maps; measured without matplotlib, by a Python with NumPy, and shown after that.
measured() { "$python" "$root/scripts/reproduce" "$@" --kcp "$kcp" --device cpu --out "$scratch/other" --measure-only; }
measured rt-figure-7 rt-table-3 influence-figure-3 --sets WEC --scale 0.001 --runs 1 --warmup 0 >"$scratch/log" 2>&1 ||
  { cat "$scratch/log"; fail "RT-HiSS and influence"; }
"$root/scripts/reproduce" page --kcp "$kcp" --out "$scratch/other" >"$scratch/log" 2>&1 ||
  { cat "$scratch/log"; fail "the page of RT-HiSS and influence"; }
for file in README.md rt-figure-7.{json,csv,md,png,svg} rt-table-3.{csv,md,png} influence-figure-3.{json,md,png,svg}; do
  [ -s "$scratch/other/$file" ] || fail "no $file"
done
[ "$(grep -c ',ok,' "$scratch/other/rt-figure-7.csv")" -eq 9 ] || fail "not 9 configurations of rt-figure-7"
[ "$(grep -cE ',(first|yes)$' "$scratch/other/rt-table-3.csv")" -eq 12 ] || fail "not 12 checked answers of rt-table-3"
[ "$(grep -cE '\| (holds|does not hold) \|$' "$scratch/other/README.md")" -eq 10 ] || fail "not 10 verdicts more"

code=0
reproduce nothing >/dev/null 2>"$scratch/log" || code=$?
[ "$code" -ne 0 ] && grep -q 'no table or figure is called nothing' "$scratch/log" || fail "a wrong name"
echo "6 items, 21 verdicts"
