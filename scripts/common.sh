# shellcheck shell=bash
# Shared by the scripts beside it, which source it: messages, missing packages, the build tool.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
jobs=$(nproc)

stage() { printf '\n== %s\n' "$*" >&2; }

fail() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

has_command() { command -v "$1" >/dev/null 2>&1; }
has_header() { echo "#include <$1>" | cc -E -x c - >/dev/null 2>&1; }
gpu_is_visible() { nvidia-smi -L >/dev/null 2>&1; }

# Whether clang links the program of standard input with flag $1: its runtime libraries come in
# packages of their own.
clang_links() { clang "$1" -x c - -o /dev/null >/dev/null 2>&1; }

# install_packages PACKAGE...: by apt, silent when all goes well.
install_packages() {
  local log as_root=()
  if ! has_command apt-get; then fail "please install what these Debian packages hold: $*"; fi
  if [ "$(id -u)" -ne 0 ]; then
    has_command sudo || fail "please install as root: apt-get install $*"
    as_root=(sudo)
  fi
  stage "installing $*"
  log=$(mktemp)
  # A stale or partly unreachable list is no failure by itself: the installation tells.
  "${as_root[@]}" apt-get -qq update >"$log" 2>&1 </dev/null || true
  if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y \
    --no-install-recommends "$@" >>"$log" 2>&1 </dev/null; then
    tail -n 5 "$log" >&2
    rm -f "$log"
    fail "apt-get could not install: $*"
  fi
  rm -f "$log"
}

# CMakeLists.txt asks for 3.25; older distributions get it from PyPI into the build folder.
cmake_is_new_enough() {
  local version
  version=$(cmake --version 2>/dev/null | sed -n '1s/^cmake version //p')
  [ -n "$version" ] && printf '3.25\n%s\n' "$version" | sort -V -C
}

require_cmake() {
  local tools=$root/build/tools
  PATH=$tools/bin:$PATH
  if cmake_is_new_enough; then return; fi
  if ! python3 -c 'import ensurepip, venv' >/dev/null 2>&1; then install_packages python3-venv; fi
  stage "installing cmake (at least 3.25 is needed)"
  if ! python3 -m venv "$tools" ||
    ! "$tools/bin/pip" install --quiet --disable-pip-version-check cmake; then
    fail "cmake 3.25 or later is needed"
  fi
  hash -r
}

# require_tools: what every build needs.
require_tools() {
  local missing=()
  has_command cc && has_command c++ || missing+=(gcc g++ libc6-dev)
  has_command cmake || missing+=(cmake)
  has_command ninja || has_command make || missing+=(ninja-build)
  has_header jansson.h || missing+=(libjansson-dev)
  has_header png.h || missing+=(libpng-dev) # for maps; a build without it has all else
  if [ ${#missing[@]} -gt 0 ]; then install_packages "${missing[@]}"; fi
  require_cmake
  if has_command ninja; then export CMAKE_GENERATOR=Ninja; fi
}

# require_test_tools: what the tests need beyond that.
require_test_tools() {
  local missing=() version
  has_header cmocka.h || missing+=(libcmocka-dev)
  has_command clang || missing+=(clang)
  # scripts/reproduce makes an environment of its own.
  python3 -c 'import ensurepip, venv' >/dev/null 2>&1 || missing+=(python3-venv)
  if [ ${#missing[@]} -gt 0 ]; then install_packages "${missing[@]}"; fi
  version=$(clang -dumpversion)
  version=${version%%.*}
  missing=()
  echo 'int LLVMFuzzerTestOneInput(const char *d, long n) { return 0; }' |
    clang_links -fsanitize=fuzzer,address,undefined || missing+=("libclang-rt-$version-dev")
  echo 'int main(void) { return 0; }' | clang_links -fopenmp || missing+=("libomp-$version-dev")
  if [ ${#missing[@]} -gt 0 ]; then install_packages "${missing[@]}"; fi
}

# The CUDA compiler, on the path or in its usual place; empty when there is none.
nvcc_path() { PATH=$PATH:/usr/local/cuda/bin:/opt/cuda/bin command -v nvcc || true; }

# configure FOLDER [cmake argument...] and build; the log is shown only when something goes wrong.
configure_and_build() {
  local folder=$1 log=$1/build.log
  shift
  mkdir -p "$folder"
  if ! { (cd "$root" && cmake -B "$folder" "$@") &&
    cmake --build "$folder" --parallel "$jobs"; } >"$log" 2>&1; then
    grep -nE -A 12 '(error|Error|FAILED)' "$log" | head -n 80 >&2 || true
    fail "the build failed: see $log"
  fi
}
