#!/usr/bin/env bash
# Runs transcripts of the command line: tests/cli/run.sh KCP CASE...
#
# A case is a text file. Its lines:
#   $ COMMAND    run by bash in a scratch folder of the case; `kcp` is the program under test
#   > TEXT       the next line that the command must write to stdout
#   2> TEXT      the next line that it must write to stderr
#   >~ REGEX     the same, but the line must match an extended regular expression (2>~ for stderr)
#   >*  2>*      whatever follows on that stream is not looked at
#   = N          the exit code; 0 when there is no such line
#   # TEXT       a comment; empty lines are skipped
# Streams without a line of theirs must stay empty.
set -u

program=$(realpath "$1")
shift
failures=0

# Compares the actual lines in file $1 with the expected ones that follow.
compare() {
  local stream=$1 actual=$2 i
  shift 2
  local -a lines
  mapfile -t lines <"$actual"
  i=0
  for expected in "$@"; do
    case $expected in
      '*') return 0 ;;
      '='*)
        if ((i >= ${#lines[@]})) || [[ ${lines[i]} != "${expected:1}" ]]; then
          echo "    $stream line $((i + 1)) expected: ${expected:1}"
          echo "    $stream line $((i + 1)) actual:   ${lines[i]-(none)}"
          return 1
        fi
        ;;
      '~'*)
        if ((i >= ${#lines[@]})) || ! [[ ${lines[i]} =~ ^${expected:1}$ ]]; then
          echo "    $stream line $((i + 1)) expected to match: ${expected:1}"
          echo "    $stream line $((i + 1)) actual:            ${lines[i]-(none)}"
          return 1
        fi
        ;;
    esac
    i=$((i + 1))
  done
  if ((i < ${#lines[@]})); then
    echo "    $stream line $((i + 1)) not expected: ${lines[i]}"
    return 1
  fi
}

# Runs the command collected so far and checks what it did.
check() {
  [[ -n $command ]] || return 0
  local code ok=1
  (
    cd "$scratch/work" || exit 99
    kcp() { "$program" "$@"; }
    eval "$command"
  ) >"$scratch/stdout" 2>"$scratch/stderr" </dev/null
  code=$?
  exec {report}>"$scratch/report"
  compare stdout "$scratch/stdout" ${out[@]+"${out[@]}"} >&"$report" || ok=0
  compare stderr "$scratch/stderr" ${err[@]+"${err[@]}"} >&"$report" || ok=0
  if ((code != want)); then
    echo "    exit code expected: $want, actual: $code" >&"$report"
    ok=0
  fi
  exec {report}>&-
  if ((!ok)); then
    echo "FAILED $case_name:$line_number: $command"
    cat "$scratch/report"
    failures=$((failures + 1))
  fi
}

run_case() {
  local case_file=$1 text number=0
  case_name=$(basename "$case_file")
  scratch=$(mktemp -d)
  mkdir "$scratch/work"
  command='' out=() err=() want=0 line_number=0
  while IFS= read -r text || [[ -n $text ]]; do
    number=$((number + 1))
    case $text in
      '$ '*)
        check
        command=${text:2} out=() err=() want=0 line_number=$number
        ;;
      '> '* | '>') out+=("=${text:2}") ;;
      '>~ '*) out+=("~${text:3}") ;;
      '>*') out+=('*') ;;
      '2> '* | '2>') err+=("=${text:3}") ;;
      '2>~ '*) err+=("~${text:4}") ;;
      '2>*') err+=('*') ;;
      '= '*) want=${text:2} ;;
      '#'* | '') ;;
      *)
        echo "$case_name:$number: not a line of a case: $text"
        failures=$((failures + 1))
        ;;
    esac
  done <"$case_file"
  check
  rm -rf "$scratch"
}

for case_file in "$@"; do run_case "$case_file"; done
if ((failures > 0)); then
  echo "$failures failed"
  exit 1
fi
