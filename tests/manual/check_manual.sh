#!/usr/bin/env bash
# check_manual.sh KCP FOLDER: the manual page and the completion scripts in FOLDER are well formed and
# tell of every command, option and algorithm of KCP. A shell that is not installed is not asked.
set -euo pipefail

kcp=$(realpath "$1")
cd "$2"
failures=0
complain() {
  echo "FAILED: $*"
  failures=$((failures + 1))
}
has() { command -v "$1" >/dev/null 2>&1; }

options=$({
  "$kcp" help query
  "$kcp" help bench
  "$kcp" help gen
} | grep -oE '^  --[a-z0-9-]+' | tr -d ' ' | sort -u)
algorithms=$("$kcp" list | awk 'NR == 1 { next } NF == 0 { exit } { print $1 }')
commands=$("$kcp" help | sed -n '/or a command:/,/^$/p' | awk 'NR > 1 && NF { print $1 }')
[ "$(wc -l <<<"$options")" -ge 30 ] || complain "help lists $(wc -l <<<"$options") options"
[ "$(wc -l <<<"$algorithms")" -ge 10 ] || complain "kcp list shows $(wc -l <<<"$algorithms") algorithms"
[ "$(wc -l <<<"$commands")" -ge 7 ] || complain "help lists $(wc -l <<<"$commands") commands"

check_contents() {
  local file=$1 text=$2 word
  for word in $options; do
    if ! grep -qE -- "$word([^a-z0-9-]|\$)" <<<"$text"; then complain "$file does not tell of $word"; fi
  done
  for word in $algorithms $commands; do
    if ! grep -qF -- "$word" <<<"$text"; then complain "$file does not tell of $word"; fi
  done
}

if has man && has groff; then
  warnings=$(LC_ALL=C.UTF-8 MANROFFSEQ='' man --warnings -E UTF-8 -l -Tutf8 -Z kcp.1 2>&1 >/dev/null || echo failed)
  [ -z "$warnings" ] || complain "kcp.1: $warnings"
  check_contents kcp.1 "$(MANPAGER=cat MANWIDTH=200 man --no-hyphenation -l kcp.1 2>/dev/null)"
fi
if has mandoc; then
  warnings=$(mandoc -T lint -W warning kcp.1 2>&1 | grep -v 'missing date' || true)
  [ -z "$warnings" ] || complain "kcp.1: $warnings"
fi

bash -n kcp.bash || complain "kcp.bash is no bash"
check_contents kcp.bash "$(cat kcp.bash)"
if has zsh; then zsh -n _kcp || complain "_kcp is no zsh"; fi
check_contents _kcp "$(cat _kcp)"
if has fish; then fish --no-config -n kcp.fish || complain "kcp.fish is no fish"; fi
check_contents kcp.fish "$(sed 's/ -l / --/' kcp.fish)"

# complete_in_bash WORD...: what bash offers for the last word.
complete_in_bash() {
  (
    compopt() { :; }
    # shellcheck source=/dev/null
    source ./kcp.bash
    COMP_WORDS=(kcp "$@")
    COMP_CWORD=$#
    _kcp
    echo "${COMPREPLY[@]}"
  )
}
expect() {
  local wanted=$1 offered
  shift
  offered=$(complete_in_bash "$@")
  [ "$offered" = "$wanted" ] || complain "bash offers '$offered' for 'kcp $*', not '$wanted'"
}
expect "--metric --method --memory" --me
expect "dspp dspp+ dspp-plus dspp+p dspp-p dspp+pea dspp-pea" --algo dsp
expect "bitonic" --algo = bit
expect "dbf,heap" bench --buffer dbf,he
expect "sierpinski" gen s
expect "gen gen-values global-threshold" help g
expect "--drop-invalid" convert --d
expect "" info --k

if has fish; then
  offered=$(fish --no-config -c "source kcp.fish; complete -C 'kcp gen --spl'" | cut -f1)
  [ "$offered" = "--split-range" ] || complain "fish offers '$offered' for kcp gen --spl"
  offered=$(fish --no-config -c "source kcp.fish; complete -C 'kcp --kernel t'" | cut -f1)
  [ "$offered" = "tiled" ] || complain "fish offers '$offered' for kcp --kernel t"
fi

if ((failures > 0)); then exit 1; fi
echo "$(wc -l <<<"$options") options, $(wc -l <<<"$algorithms") algorithms, $(wc -l <<<"$commands") commands"
