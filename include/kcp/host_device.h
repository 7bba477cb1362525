/* Annotation for functions whose one body serves host and device. */
#ifndef KCP_HOST_DEVICE_H
#define KCP_HOST_DEVICE_H

#ifdef __CUDACC__
#define KCP_HD __host__ __device__
#else
#define KCP_HD
#endif

#endif
