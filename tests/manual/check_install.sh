#!/usr/bin/env bash
# check_install.sh BUILD: what cmake --install puts below a prefix is complete and runs, and so is the
# Debian package of cpack, unpacked. Exits 77 (skipped) where there are no tools for packages.
set -euo pipefail

build=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# check_tree PREFIX: every file is there and the program finds pairs.
check_tree() {
  local file
  for file in bin/kcp share/man/man1/kcp.1 share/bash-completion/completions/kcp \
    share/zsh/site-functions/_kcp share/zsh/vendor-completions/_kcp \
    share/fish/vendor_completions.d/kcp.fish share/doc/kcp/copyright share/doc/kcp/CHANGELOG.md; do
    [ -s "$1/$file" ] || { echo "FAILED: no $file below $1"; exit 1; }
  done
  (
    cd "$scratch"
    "$1/bin/kcp" gen uniform 1000 D1.bin --quiet
    "$1/bin/kcp" --self --k 3 --quiet D1.bin >pairs.csv
    [ "$(wc -l <pairs.csv)" -eq 4 ]
  ) || { echo "FAILED: $1/bin/kcp does not run"; exit 1; }
}

cmake --install "$build" --prefix "$scratch/prefix" >"$scratch/install.log"
check_tree "$scratch/prefix"
echo "cmake --install: $("$scratch/prefix/bin/kcp" version | head -n 1)"

for tool in cpack dpkg-deb dpkg-shlibdeps; do
  command -v "$tool" >/dev/null 2>&1 || { echo "no $tool: the package was not made"; exit 77; }
done
if ! cpack --config "$build/CPackConfig.cmake" -B "$scratch/package" >"$scratch/cpack.log" 2>&1; then
  cat "$scratch/cpack.log"
  exit 1
fi
package=$(echo "$scratch"/package/kcp_*.deb)
dpkg-deb -x "$package" "$scratch/root"
check_tree "$scratch/root/usr"
version=$("$scratch/root/usr/bin/kcp" version | sed -n '1s/^kcp //p')
[ "$(dpkg-deb -f "$package" Version)" = "$version" ] ||
  { echo "FAILED: the package has another version than the program"; exit 1; }
dpkg-deb -f "$package" Depends | grep -qE 'libc6 .*(libgomp1|libomp)' ||
  { echo "FAILED: the package depends on: $(dpkg-deb -f "$package" Depends)"; exit 1; }
for field in Maintainer Description Section Architecture; do
  [ -n "$(dpkg-deb -f "$package" $field)" ] || { echo "FAILED: no field $field"; exit 1; }
done
echo "$(basename "$package"): depends on $(dpkg-deb -f "$package" Depends)"
