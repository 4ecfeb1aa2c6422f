// Runs CUDA kernels on the CPU, for tests: block after block, the threads of a block as fibers that
// take turns at barriers and where the lanes of a warp exchange values. If some threads never reach
// a barrier, or lanes of a warp wait at different places, the program ends.
#pragma once
#include <setjmp.h>
#include <ucontext.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static  // blocks take turns
#define DYNAMIC_SHARED(T, name) T* name = reinterpret_cast<T*>(shim::dynamic_shared.data())

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};
inline Dim3 threadIdx, blockIdx, blockDim, gridDim;
struct float2 {
  float x, y;
};
inline float2 make_float2(float x, float y) { return {x, y}; }

namespace shim {

enum class Status { kReady, kAtBarrier, kInWarp, kDone };

struct Fiber {
  static constexpr size_t kStack = 1 << 17;
  ucontext_t context;
  jmp_buf jump;
  std::unique_ptr<char[]> stack{new char[kStack]};
  bool has_started = false;
  Status status = Status::kDone;
};

inline std::vector<std::unique_ptr<Fiber>> fibers;
inline jmp_buf scheduler;
inline unsigned current;
inline uint64_t exchanged[32][32];  // by warp and lane
inline std::vector<uint64_t> dynamic_shared;
inline std::function<void()> kernel;

inline void wait(Status status) {
  Fiber& fiber = *fibers[current];
  fiber.status = status;
  if (!_setjmp(fiber.jump)) _longjmp(scheduler, 1);
  threadIdx.x = current;
}

// A thread of block after block: to make a fiber takes longer than most kernels do.
inline void run_fiber() {
  while (true) {
    kernel();
    wait(Status::kDone);
  }
}

// Lets threads go on that wait, if all that are not done do; returns whether there were any.
inline bool release(unsigned first, unsigned end, Status status) {
  bool any = false;
  for (unsigned i = first; i < end; ++i) {
    if (fibers[i]->status == Status::kDone) continue;
    if (fibers[i]->status != status) return false;
    any = true;
  }
  for (unsigned i = first; any && i < end; ++i)
    if (fibers[i]->status == status) fibers[i]->status = Status::kReady;
  return any;
}

inline void start_fiber(Fiber& fiber) {
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = Fiber::kStack;
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, run_fiber, 0);
  fiber.has_started = true;
  setcontext(&fiber.context);
}

inline void run_block(unsigned n) {
  while (fibers.size() < n) fibers.push_back(std::make_unique<Fiber>());
  for (unsigned i = 0; i < n; ++i) fibers[i]->status = Status::kReady;
  volatile bool has_moved = true;
  while (has_moved) {
    has_moved = false;
    for (volatile unsigned i = 0; i < n; i = i + 1) {
      if (fibers[i]->status != Status::kReady) continue;
      current = threadIdx.x = i;
      has_moved = true;
      if (_setjmp(scheduler)) continue;
      if (fibers[i]->has_started) _longjmp(fibers[i]->jump, 1);
      start_fiber(*fibers[i]);
    }
    for (unsigned w = 0; w < n; w += 32)
      if (release(w, std::min(w + 32, n), Status::kInWarp)) has_moved = true;
    if (release(0, n, Status::kAtBarrier)) has_moved = true;
  }
  for (unsigned i = 0; i < n; ++i)
    if (fibers[i]->status != Status::kDone) {
      std::fprintf(stderr, "not all threads of a block reach a barrier\n");
      std::abort();
    }
}

// Runs a kernel with arguments that the pointers lead to.
template <class... Arguments, size_t... kPlaces>
void launch(void (*function)(Arguments...), void** arguments, unsigned grid_x, unsigned grid_y,
            unsigned n_threads, size_t n_bytes, std::index_sequence<kPlaces...>) {
  gridDim = {grid_x, grid_y};
  blockDim = {n_threads};
  kernel = [=] { function(*static_cast<Arguments*>(arguments[kPlaces])...); };
  for (unsigned y = 0; y < grid_y; ++y)
    for (unsigned x = 0; x < grid_x; ++x) {
      blockIdx = {x, y};
      dynamic_shared.assign(n_bytes / 8 + 1, 0xDDDDDDDDDDDDDDDD);  // never zeros by luck
      run_block(n_threads);
    }
}
template <class... Arguments>
void launch(void (*function)(Arguments...), void** arguments, unsigned grid_x, unsigned grid_y,
            unsigned n_threads, size_t n_bytes) {
  launch(function, arguments, grid_x, grid_y, n_threads, n_bytes,
         std::index_sequence_for<Arguments...>{});
}

// Every lane of a warp gives a value, and takes that of another.
template <class T>
T exchange(T value, unsigned from) {
  static_assert(sizeof(T) <= 8);
  const unsigned warp = current / 32, lane = current % 32;
  std::memcpy(&exchanged[warp][lane], &value, sizeof(T));
  wait(Status::kInWarp);
  T taken;
  std::memcpy(&taken, &exchanged[warp][from], sizeof(T));
  wait(Status::kInWarp);
  return taken;
}

}  // namespace shim

inline void __syncthreads() { shim::wait(shim::Status::kAtBarrier); }
inline void __threadfence() {}
inline void __syncwarp() { shim::wait(shim::Status::kInWarp); }
template <class T>
T __shfl_xor_sync(unsigned, T value, int mask) {
  return shim::exchange(value, (shim::current % 32) ^ mask);
}
template <class T>
T __shfl_up_sync(unsigned, T value, int distance) {
  const int lane = shim::current % 32;
  return shim::exchange(value, lane >= distance ? lane - distance : lane);
}
template <class T>
T __shfl_sync(unsigned, T value, int lane) {
  return shim::exchange(value, lane);
}
inline unsigned __ballot_sync(unsigned, bool vote) {
  const unsigned warp = shim::current / 32;
  shim::exchanged[warp][shim::current % 32] = vote;
  shim::wait(shim::Status::kInWarp);
  unsigned votes = 0;
  for (int i = 0; i < 32; ++i) votes |= static_cast<unsigned>(shim::exchanged[warp][i] & 1) << i;
  shim::wait(shim::Status::kInWarp);
  return votes;
}
inline int __ffs(unsigned x) { return x ? std::countr_zero(x) + 1 : 0; }
inline int __popc(unsigned x) { return std::popcount(x); }
template <class T, class Value>
T atomicAdd(T* at, Value value) {
  const T old = *at;
  *at += static_cast<T>(value);
  return old;
}
inline double __longlong_as_double(long long bits) { return std::bit_cast<double>(bits); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
