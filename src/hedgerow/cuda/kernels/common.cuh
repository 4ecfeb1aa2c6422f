// What all kernels share. The number of labels, K, is a constant of the compilation: -DN_LABELS=3.
#pragma once

#ifndef DYNAMIC_SHARED
#define DYNAMIC_SHARED(T, name) extern __shared__ T name[]
#endif
#define UNROLL _Pragma("unroll")

typedef long long i64;
typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned char u8;

#define K N_LABELS

#define INFINITE __longlong_as_double(0x7FF0000000000000)

template <class T>
__device__ __forceinline__ T warp_sum(T x) {
  for (int o = 16; o; o >>= 1) x += __shfl_xor_sync(~0u, x, o);
  return x;
}
template <class T>
__device__ __forceinline__ T warp_max(T x) {
  for (int o = 16; o; o >>= 1) {
    const T other = __shfl_xor_sync(~0u, x, o);
    x = other > x ? other : x;
  }
  return x;
}
__device__ __forceinline__ int lane_of_warp() { return threadIdx.x & 31; }
__device__ __forceinline__ i64 thread_of_grid() {
  return (i64)blockIdx.x * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ i64 threads_of_grid() { return (i64)gridDim.x * blockDim.x; }
