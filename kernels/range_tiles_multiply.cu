/* Products of tiles on matrix units (include/kcp/range_tiles.h).
 *
 * A block of four warps has a tile of 128 queries, and takes the tiles that it meets one after the
 * other; a warp has 64 x 64 of the 128 x 128 pairs in 128 registers a lane. Rows come in blocks of
 * 16 dimensions, 4 KiB each: those of the block's own tile stay in shared memory up to 192
 * dimensions, beyond that they come again for each tile; the others come through three buffers of
 * up to four blocks, two ahead (16 KiB each; 32 KiB beyond 192 dimensions). A pair of tiles takes
 * 256 instructions of the matrix units for each 16 dimensions, and reads of 64 KiB from shared
 * memory; without a pair in reach, 64 instructions a lane besides, and with pairs up to 800.
 *
 * What a lane has of a block of 16 rows: rows g and g + 8 (g = lane / 4), columns 8 j + 2 c and the
 * next one (c = lane % 4, j from 0 to 7). Points are placed so (kcp_tile_row_place,
 * kcp_tile_column_place) that these 16 columns are consecutive points, and that a lane is left with
 * 32 consecutive columns of a row when it changes halves with its neighbour. */
#include <cuda_fp16.h>

#include <cstdlib>

#include "range_tiles_decide.cuh"

static const int threads = 128;
static const uint32_t block_halves = KCP_TILE_POINTS * 16; /* of a block of 16 dimensions */
static const uint32_t most_staged = 4;                     /* blocks at a time */
static const uint32_t stages = 3;
static const uint32_t most_resident = 12; /* blocks of a tile that stays */
static const uint32_t copies =
    block_halves * sizeof(__half) / 16 / threads; /* a thread and block */

/* ---- the device's instructions ---- */

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define KCP_HAS_UNITS 0 /* kcp_tiles_check_units finds that out */
#else
#define KCP_HAS_UNITS 1
#endif

__device__ static uint32_t shared_address(const void *pointer) {
  return (uint32_t)__cvta_generic_to_shared(pointer);
}

/* 16 bytes to shared memory, later. */
__device__ static void copy_later(uint32_t to, const void *from) {
#if KCP_HAS_UNITS
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
#endif
}

__device__ static void end_of_copies() {
#if KCP_HAS_UNITS
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Until all but the last `LATER` groups of the thread's copies are there. */
template <int LATER>
__device__ static void wait_for_copies() {
#if KCP_HAS_UNITS
  asm volatile("cp.async.wait_group %0;" ::"n"(LATER) : "memory");
#endif
}

/* Four 8 x 8 matrices of halves; a lane gives the address of one of their 32 rows. */
__device__ static void load_matrices(uint32_t address, uint32_t to[4]) {
#if KCP_HAS_UNITS
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
#endif
}

/* sums = before + a b: 16 x 8 sums of 16 products. */
__device__ static void multiply_add(float sums[4], const uint32_t a[4], const uint32_t b[2],
                                    float before0, float before1, float before2, float before3) {
#if KCP_HAS_UNITS
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%10, %11, %12, %13};"
      : "=f"(sums[0]), "=f"(sums[1]), "=f"(sums[2]), "=f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(before0),
        "f"(before1), "f"(before2), "f"(before3));
#endif
}

/* ---- the products of a warp ---- */

/* [16 rows][8 columns][place in the fragment] */
typedef float warp_sums[4][8][4];

/* Where a lane's rows of matrices begin in a block of 16 dimensions, in bytes; later ones are 512
 * bytes on. */
struct fragment_places {
  uint32_t row, column;
};

__device__ static struct fragment_places places_of(uint32_t warp_row, uint32_t warp_column) {
  const uint32_t lane = threadIdx.x % 32, row = lane % 8;
  struct fragment_places places;
  /* Rows 0-7 and 8-15 of the first 8 dimensions, then of the others. */
  places.row = 2 * kcp_tile_chunk_place(warp_row + (lane >> 3 & 1) * 8 + row, lane >> 4);
  /* Columns 0-7 of the first and the other 8 dimensions, then columns 8-15. */
  places.column = 2 * kcp_tile_chunk_place(warp_column + (lane >> 4) * 8 + row, lane >> 3 & 1);
  return places;
}

/* Adds 16 dimensions; with FIRST, to `start` instead of what is there. */
template <bool FIRST>
__device__ static void multiply_block(uint32_t rows, uint32_t columns, float start,
                                      warp_sums sums) {
  uint32_t a[4][4];
#pragma unroll
  for (int i = 0; i < 4; ++i) load_matrices(rows + i * 512, a[i]);
#pragma unroll
  for (int pair = 0; pair < 4; ++pair) {
    uint32_t b[4];
    load_matrices(columns + pair * 512, b);
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        float *to = sums[i][pair * 2 + half];
        if (FIRST)
          multiply_add(to, a[i], b + half * 2, start, start, start, start);
        else
          multiply_add(to, a[i], b + half * 2, to[0], to[1], to[2], to[3]);
      }
  }
}

/* ---- what the sums say ---- */

/* What a warp knows of its part of a task. */
struct place {
  uint32_t warp_row, warp_column;
  uint32_t query_tile;
};

/* Found and open pairs of a warp: of 16 rows, a word of 32 columns a lane. */
struct found_words {
  uint32_t within[4], open[4];
  bool any_open;
};

/* Bit 16 h + 2 j + e of a lane's word: sums[j][2 h + e] is negative (of minus 0 too, which never
 * matters: 0 itself is beyond, and its difference from `within` is not 0). */
__device__ static uint32_t negative_bits(const float sums[8][4], float less) {
  uint32_t word = 0;
#pragma unroll
  for (int h = 1; h >= 0; --h)
#pragma unroll
    for (int j = 7; j >= 0; --j)
#pragma unroll
      for (int e = 1; e >= 0; --e)
        word = __funnelshift_l(__float_as_uint(sums[j][2 * h + e] - less), word, 1);
  return word;
}

/* A lane's 16 columns of two rows become 32 columns of one: of the row g + 8 (c % 2), the columns
 * from 32 (c / 2) on. */
__device__ static uint32_t join_halves(uint32_t word) {
  const uint32_t other = __shfl_xor_sync(~0u, word, 1);
  return __byte_perm(word, other, threadIdx.x & 1 ? 0x3276 : 0x5410);
}

/* Whether a warp has anything in reach, and what; false when it has nothing. */
__device__ static bool read_sums(const warp_sums sums, float within, struct found_words *found) {
  bool any = false;
  found->any_open = false;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    uint32_t all = ~0u;
#pragma unroll
    for (int j = 0; j < 8; ++j)
#pragma unroll
      for (int v = 0; v < 4; ++v) all &= __float_as_uint(sums[i][j][v]);
    found->within[i] = found->open[i] = 0;
    if (!__any_sync(~0u, all >> 31 == 0)) continue;
    any = true;
    const uint32_t reached = ~negative_bits(sums[i], 0);
    const uint32_t sure = ~negative_bits(sums[i], within);
    const uint32_t open = reached & ~sure;
    found->within[i] = join_halves(sure);
    if (!__any_sync(~0u, open != 0)) continue;
    found->any_open = true;
    found->open[i] = join_halves(open);
  }
  return any;
}

/* Row of a lane's word i in the tile. */
__device__ static uint32_t row_of(uint32_t warp_row, int i) {
  const uint32_t lane = threadIdx.x % 32, g = lane / 4, c = lane % 4;
  return warp_row + 32 * (i / 2) + 4 * g + 2 * (i % 2) + c % 2;
}

/* Of words 2 * half and 2 * half + 1, whose rows are 32 in all: the 64 columns of the row of the
 * lane's number, in two words. */
__device__ static uint2 row_words(const uint32_t words[4], int half) {
  const uint32_t first = words[2 * half], second = words[2 * half + 1];
  const bool upper = (threadIdx.x & 2) != 0;
  const uint32_t other = __shfl_xor_sync(~0u, upper ? first : second, 2);
  return upper ? make_uint2(other, second) : make_uint2(first, other);
}

/* Bit r of lane c's word from bit c of lane r's. */
__device__ static uint32_t transpose(uint32_t word) {
  uint32_t low = 0x0000ffffu;
#pragma unroll
  for (uint32_t width = 16; width > 0; width /= 2, low ^= low << width) {
    const uint32_t other = __shfl_xor_sync(~0u, word, width);
    word = threadIdx.x & width ? (word & ~low) | (other >> width & low)
                               : (word & low) | (other & low) << width;
  }
  return word;
}

/* Counts the warp's pairs for the points of the other tile. */
__device__ static void count_columns(const struct kcp_tile_work &work, const struct place &place,
                                     uint32_t tile, const uint32_t words[4]) {
  const uint2 upper = row_words(words, 0), lower = row_words(words, 1);
  const uint32_t first = __popc(transpose(upper.x)) + __popc(transpose(lower.x));
  const uint32_t second = __popc(transpose(upper.y)) + __popc(transpose(lower.y));
  uint32_t *totals =
      work.totals + kcp_tile_first(work.points, tile) + place.warp_column + threadIdx.x % 32;
  if (first != 0) atomicAdd(totals, first);
  if (second != 0) atomicAdd(totals + 32, second);
}

/* Writes the warp's 64 x 64 bits to the masks of the entry. */
__device__ static void write_masks(const struct kcp_tile_work &work, const struct place &place,
                                   uint64_t entry, const uint32_t words[4]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const uint2 columns = row_words(words, half);
    const uint32_t row = place.warp_row + 32 * half + threadIdx.x % 32;
    if ((columns.x | columns.y) != 0)
      *(uint2 *)(kcp_tile_mask(work, place.query_tile, entry, row) + place.warp_column / 32) =
          columns;
  }
}

/* Decides a lane's open pair on the spot. */
template <typename T>
__device__ __noinline__ static void settle_here(const struct kcp_tile_work &work, uint64_t entry,
                                                uint32_t row, uint32_t column) {
  const struct kcp_open_pair pair = {entry, row, column};
  kcp_tile_settle<T>(work, pair, true, 1, 0);
}

/* Lists the warp's open pairs, or decides what there is no room for. */
template <typename T>
__device__ static void list_open(const struct kcp_tile_work &work, const struct place &place,
                                 uint64_t entry, const uint32_t words[4]) {
  const uint32_t lane = threadIdx.x % 32;
  const uint32_t count = __popc(words[0]) + __popc(words[1]) + __popc(words[2]) + __popc(words[3]);
  uint32_t before = count;
  for (int offset = 1; offset < 32; offset *= 2) {
    const uint32_t other = __shfl_up_sync(~0u, before, offset);
    if (lane >= offset) before += other;
  }
  unsigned long long at = 0;
  if (lane == 31) at = atomicAdd(work.open_count, (unsigned long long)before);
  at = __shfl_sync(~0u, at, 31) + before - count;
  const uint32_t first_column = place.warp_column + 32 * (lane >> 1 & 1);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const uint32_t row = row_of(place.warp_row, i);
    for (uint32_t bits = words[i]; bits != 0; bits &= bits - 1, ++at) {
      const uint32_t column = first_column + __ffs(bits) - 1;
      if (at < work.open_capacity)
        work.open[at] = kcp_open_pack(entry, row, column);
      else
        settle_here<T>(work, entry, row, column);
    }
  }
}

/* ---- the kernel ---- */

/* Copies blocks of 16 dimensions. */
__device__ static void fetch(uint32_t to, const __half *from, uint32_t blocks) {
  for (uint32_t i = 0; i < blocks * copies; ++i) {
    const uint32_t at = (i * threads + threadIdx.x) * 16;
    copy_later(to + at, (const char *)from + at);
  }
}

/* The steps of a task: for each of its tiles, its blocks of dimensions, up to four at a time. */
struct steps {
  uint64_t entry; /* of the next step */
  uint32_t block;
  uint32_t slot; /* buffer that it goes to */
};

template <typename T, bool RESIDENT>
__global__ static void __launch_bounds__(threads, 2)
    multiply(const __grid_constant__ struct kcp_tile_work work) {
  extern __shared__ __align__(128) unsigned char memory[];
  const struct kcp_tile_task task = work.tasks[blockIdx.x];
  const uint64_t end = task.first + task.count;
  const uint32_t block_bytes = block_halves * sizeof(__half);
  const uint64_t tile_halves = (uint64_t)work.blocks * block_halves;
  const __half *rows = work.queries.rows + task.tile * tile_halves;
  const uint32_t staged = work.blocks < most_staged ? work.blocks : most_staged;
  const uint32_t buffers = shared_address(memory) + (RESIDENT ? work.blocks * block_bytes : 0);
  const uint32_t buffer_bytes = staged * block_bytes * (RESIDENT ? 1 : 2);
  const uint32_t warp = threadIdx.x / 32;
  const struct place place = {warp / 2 * 64, warp % 2 * 64, task.tile};
  const struct fragment_places fragments = places_of(place.warp_row, place.warp_column);
  const float limit = (float)work.limits.limit, within = (float)work.limits.within;
  uint32_t row_counts[4] = {0, 0, 0, 0};
  struct steps ahead = {task.first, 0, 0}, now = {task.first, 0, 0};
  uint32_t tile_ahead = work.met[task.first]; /* read long before it is needed */
  warp_sums sums;

  const auto fetch_next = [&]() {
    if (ahead.entry < end) {
      const uint32_t left = work.blocks - ahead.block, here = left < staged ? left : staged;
      const uint32_t to = buffers + ahead.slot * buffer_bytes;
      const uint64_t begin = (uint64_t)ahead.block * block_halves;
      fetch(to, work.points.columns + tile_ahead * tile_halves + begin, here);
      if (!RESIDENT) fetch(to + staged * block_bytes, rows + begin, here);
      ahead.block += here;
      if (ahead.block == work.blocks) {
        ahead.block = 0;
        if (++ahead.entry < end) tile_ahead = work.met[ahead.entry];
      }
      ahead.slot = ahead.slot + 1 < stages ? ahead.slot + 1 : 0;
    }
    end_of_copies(); /* an empty group counts as well */
  };

  if (RESIDENT) fetch(shared_address(memory), rows, work.blocks);
  fetch_next();
  fetch_next();
  while (now.entry < end) {
    wait_for_copies<1>();
    __syncthreads(); /* the buffer is whole, and all have left the one before it */
    fetch_next();
    const uint32_t left = work.blocks - now.block, here = left < staged ? left : staged;
    const uint32_t columns_at = buffers + now.slot * buffer_bytes + fragments.column;
    const uint32_t rows_at =
        fragments.row + (RESIDENT ? shared_address(memory) + now.block * block_bytes
                                  : buffers + now.slot * buffer_bytes + staged * block_bytes);
    uint32_t k = 0;
    if (now.block == 0) {
      multiply_block<true>(rows_at, columns_at, limit, sums);
      k = 1;
    }
    for (; k < here; ++k)
      multiply_block<false>(rows_at + k * block_bytes, columns_at + k * block_bytes, 0, sums);
    now.slot = now.slot + 1 < stages ? now.slot + 1 : 0;
    now.block += here;
    if (now.block < work.blocks) continue;
    struct found_words found;
    if (read_sums(sums, within, &found)) {
      const uint32_t tile = work.met[now.entry];
#pragma unroll
      for (int i = 0; i < 4; ++i) row_counts[i] += __popc(found.within[i]);
      if (work.mirrors && tile != task.tile) count_columns(work, place, tile, found.within);
      if (work.masks != NULL) write_masks(work, place, now.entry, found.within);
      if (found.any_open) list_open<T>(work, place, now.entry, found.open);
    }
    now.block = 0;
    ++now.entry;
  }
  const uint64_t first = kcp_tile_first(work.queries, task.tile);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const uint32_t count = row_counts[i] + __shfl_xor_sync(~0u, row_counts[i], 2);
    if ((threadIdx.x & 2) == 0 && count != 0)
      atomicAdd(&work.totals[first + row_of(place.warp_row, i)], count);
  }
}

enum kcp_status kcp_tiles_multiply(struct kcp_range_join *join, const struct kcp_tile_work *work,
                                   uint64_t first, uint64_t count, struct kcp_error *error) {
  if (count == 0) return KCP_OK;
  const bool resident = work->blocks <= most_resident;
  const uint32_t staged = work->blocks < most_staged ? work->blocks : most_staged;
  const uint32_t blocks = resident ? work->blocks + stages * staged : 2 * stages * staged;
  const size_t bytes = (size_t)blocks * block_halves * sizeof(__half);
  struct kcp_tile_work part = *work;
  part.tasks = work->tasks + first;
  void (*kernel)(struct kcp_tile_work) =
      join->is_narrow ? (resident ? multiply<float, true> : multiply<float, false>)
                      : (resident ? multiply<double, true> : multiply<double, false>);
  KCP_CUDA_TRY(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes));
  kernel<<<(unsigned)count, threads, bytes, join->stream>>>(part);
  KCP_CUDA_TRY(cudaGetLastError());
  return KCP_OK;
}

/* ---- the one property that is needed ---- */

static const int check_rounds = 64;

/* Integers whose products' partial sums stay below 2^24, some of them all but. */
struct check_values {
  int start, a, b;
};

__device__ static int small_integer(uint32_t seed, int most) {
  seed = (seed ^ 61) ^ (seed >> 16);
  seed *= 9;
  seed ^= seed >> 4;
  seed *= 0x27d4eb2d;
  seed ^= seed >> 15;
  return (int)(seed % (2u * most + 1)) - most;
}

/* Element k of a row of the first factor, or of a column of the second one. In a third of the
 * rounds all are of one size; else one product is large, of either sign, and the others tiny. */
__device__ static int check_value(int round, bool is_row, uint32_t line, int k) {
  const uint32_t seed = ((round * 2 + is_row) * 16 + line) * 16 + k;
  if (round % 3 == 0) return small_integer(seed, 1000);
  if (k != round % 16) return small_integer(seed, 3);
  if (is_row) return 2894;
  return round % 3 == 1 ? 2894 : -2894;
}

__device__ static int check_start(int round) {
  return round % 3 == 1 ? 8000001 : round % 3 == 2 ? -8000001 : 700001 + round;
}

/* A lane's two halves of a fragment: dimensions k and k + 1 of a row or column. */
__device__ static uint32_t check_pair(int round, bool is_row, uint32_t line, int k) {
  const __half2 pair = __halves2half2(__int2half_rn(check_value(round, is_row, line, k)),
                                      __int2half_rn(check_value(round, is_row, line, k + 1)));
  return *(const uint32_t *)&pair;
}

/* One warp. *wrong stays 0 when every sum is what integers give. */
__global__ static void check_units(uint32_t *wrong) {
  const uint32_t lane = threadIdx.x, g = lane / 4, c = lane % 4;
  const int round = blockIdx.x;
  uint32_t a[4], b[2];
  float sums[4] = {0, 0, 0, 0};
  const float start = (float)check_start(round);
  for (int i = 0; i < 4; ++i)
    a[i] = check_pair(round, true, g + i % 2 * 8, (int)(2 * c) + i / 2 * 8);
  for (int i = 0; i < 2; ++i) b[i] = check_pair(round, false, g, (int)(2 * c) + i * 8);
  multiply_add(sums, a, b, start, start, start, start);
  for (int i = 0; i < 4; ++i) {
    int expected = check_start(round);
    for (int k = 0; k < 16; ++k)
      expected +=
          check_value(round, true, g + i / 2 * 8, k) * check_value(round, false, 2 * c + i % 2, k);
    if (sums[i] != (float)expected) atomicAdd(wrong, 1u);
  }
}

enum kcp_status kcp_tiles_check_units(struct kcp_range_join *join, bool *exact,
                                      struct kcp_error *error) {
  uint32_t *wrong, count = 0;
  KCP_TRY(kcp_range_room(join, KCP_BUFFER_PARTIAL, 1, &wrong, error));
  KCP_CUDA_TRY(cudaMemsetAsync(wrong, 0, sizeof *wrong, join->stream));
  check_units<<<check_rounds, 32, 0, join->stream>>>(wrong);
  KCP_CUDA_TRY(cudaGetLastError());
  KCP_CUDA_TRY(cudaMemcpyAsync(&count, wrong, sizeof count, cudaMemcpyDeviceToHost, join->stream));
  KCP_CUDA_TRY(cudaStreamSynchronize(join->stream));
  *exact = count == 0;
  return KCP_OK;
}
