#!/usr/bin/env bash
# Builds kcp (installing what is missing) and answers a first query on real data: the 140 closest
# pairs of an airport and a place. Without a visible GPU it builds the CPU program alone.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

build=$root/build/quickstart
cuda=OFF
if gpu_is_visible; then cuda=AUTO; fi

require_tools
stage "building kcp in build/quickstart (KCP_CUDA=$cuda)"
configure_and_build "$build" -DCMAKE_BUILD_TYPE=Release -DKCP_TESTS=OFF -DKCP_WERROR=OFF \
  -DKCP_CUDA=$cuda

cd "$root"
stage "build/quickstart/kcp --algo dspp-pea --k 140 datasets/places.bin datasets/airports.bin"
"$build/kcp" --algo dspp-pea --k 140 datasets/places.bin datasets/airports.bin
