/* Counter-based random numbers: a draw is a pure function of (seed, stream, index, draw), so that
 * any thread on any machine computes any draw without the ones before it.
 *
 * Source: Philox4x32-10 of Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2,
 * 3", SC 2011. Header of one body for C17 and CUDA C++; cost of a draw: 20 32-bit multiplications
 * with 64-bit products, no memory. */
#ifndef KCP_RANDOM_H
#define KCP_RANDOM_H

#include <stdint.h>

#include "kcp/host_device.h"

#define KCP_PHILOX_ROUNDS 10

struct kcp_random_words {
  uint32_t word[4];
};

/* 128 random bits as two numbers. */
struct kcp_random_pair {
  uint64_t first;
  uint64_t second;
};

/* The Philox4x32-10 block of a 128-bit counter (word 0 lowest) and a 64-bit key. */
static inline KCP_HD struct kcp_random_words kcp_philox4x32(struct kcp_random_words counter,
                                                            uint64_t key) {
  uint32_t key_low = (uint32_t)key, key_high = (uint32_t)(key >> 32);
  for (int round = 0; round < KCP_PHILOX_ROUNDS; ++round) {
    const uint64_t product0 = (uint64_t)0xD2511F53u * counter.word[0];
    const uint64_t product1 = (uint64_t)0xCD9E8D57u * counter.word[2];
    const struct kcp_random_words next = {{
        (uint32_t)(product1 >> 32) ^ counter.word[1] ^ key_low,
        (uint32_t)product1,
        (uint32_t)(product0 >> 32) ^ counter.word[3] ^ key_high,
        (uint32_t)product0,
    }};
    counter = next;
    key_low += 0x9E3779B9u;
    key_high += 0xBB67AE85u;
  }
  return counter;
}

/* Draw number `draw` of item `index` in an independent sequence `stream`. */
static inline KCP_HD struct kcp_random_words kcp_random_words(uint64_t seed, uint32_t stream,
                                                              uint64_t index, uint32_t draw) {
  const struct kcp_random_words counter = {
      {(uint32_t)index, (uint32_t)(index >> 32), draw, stream}};
  return kcp_philox4x32(counter, seed);
}

static inline KCP_HD struct kcp_random_pair kcp_random_pair(uint64_t seed, uint32_t stream,
                                                            uint64_t index, uint32_t draw) {
  const struct kcp_random_words words = kcp_random_words(seed, stream, index, draw);
  const struct kcp_random_pair pair = {words.word[0] | (uint64_t)words.word[1] << 32,
                                       words.word[2] | (uint64_t)words.word[3] << 32};
  return pair;
}

/* Uniform on [0,1), a multiple of 2^-53. */
static inline KCP_HD double kcp_random_unit(uint64_t bits) {
  return (double)(bits >> 11) * 0x1p-53;
}

#endif
