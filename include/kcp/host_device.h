/* Annotation of functions with one body for host and device: KCP_HD is empty without CUDA. */
#ifndef KCP_HOST_DEVICE_H
#define KCP_HOST_DEVICE_H

#ifdef __CUDACC__
#define KCP_HD __host__ __device__
#else
#define KCP_HD
#endif

#endif
