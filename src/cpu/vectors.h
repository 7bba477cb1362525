/* One binary for all x86-64 machines: the loader picks the widest vectors the processor has. */
#ifndef KCP_CPU_VECTORS_H
#define KCP_CPU_VECTORS_H

/* Functions may carry __attribute__((target(...))) and be chosen by __builtin_cpu_supports. */
#if defined(__x86_64__) && defined(__GNUC__)
#define KCP_X86_64
#endif

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define KCP_WIDEST_VECTORS __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define KCP_WIDEST_VECTORS
#endif

#endif
