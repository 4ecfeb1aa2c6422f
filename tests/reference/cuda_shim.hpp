// Runs CUDA kernels on the CPU, for tests: block after block, the threads of a block as fibers that
// take turns at barriers and where the lanes of a warp exchange values. If some threads never reach
// a barrier, or lanes of a warp wait at different places, the program ends.
//
// Most of the time of compiling would go into the headers of containers, algorithms and <cmath>.
#pragma once
#include <setjmp.h>
#include <ucontext.h>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

extern "C" {
double exp(double), log(double), rint(double), fabs(double), ldexp(double, int);
double fmax(double, double), fmin(double, double);
int ilogb(double);
float fabsf(float), fmaxf(float, float), fminf(float, float);
}

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static  // blocks take turns
#define DYNAMIC_SHARED(T, name) T* name = static_cast<T*>(shim::dynamic_shared)

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};
inline Dim3 threadIdx, blockIdx, blockDim, gridDim;
struct float2 {
  float x, y;
};
inline float2 make_float2(float x, float y) { return {x, y}; }

namespace shim {

enum class Status : uint8_t { kReady, kAtBarrier, kInWarp, kDone };

struct Fiber {
  alignas(64) char stack[1 << 17];
  ucontext_t context;
  jmp_buf jump;
  bool has_started;
};

inline constexpr unsigned kMaxThreads = 1024;
inline Fiber fibers[kMaxThreads];     // memory is taken when a fiber is first used
inline Status statuses[kMaxThreads];  // of the threads of the block
inline jmp_buf scheduler;
inline unsigned current;
// By turn of the warp, warp and lane: no lane writes to what others may still read.
inline uint64_t exchanged[2][32][32];
inline unsigned turns[32];
inline void* dynamic_shared;
inline void** arguments;
inline void (*kernel)();

inline void run_fiber();

inline void start_fiber(Fiber& fiber) {
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack;
  fiber.context.uc_stack.ss_size = sizeof(fiber.stack);
  fiber.context.uc_link = nullptr;
  makecontext(&fiber.context, run_fiber, 0);
  fiber.has_started = true;
  setcontext(&fiber.context);
}

// Continues with the first thread that is ready, from a given one on, or with the scheduler.
inline void resume(unsigned first) {
  while (first < blockDim.x && statuses[first] != Status::kReady) ++first;
  if (first == blockDim.x) _longjmp(scheduler, 1);
  current = threadIdx.x = first;
  if (fibers[first].has_started) _longjmp(fibers[first].jump, 1);
  start_fiber(fibers[first]);
}

inline void wait(Status status) {
  statuses[current] = status;
  if (!_setjmp(fibers[current].jump)) resume(current + 1);
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
    if (statuses[i] == Status::kDone) continue;
    if (statuses[i] != status) return false;
    any = true;
  }
  for (unsigned i = first; any && i < end; ++i)
    if (statuses[i] == status) statuses[i] = Status::kReady;
  return any;
}

inline bool release_all() {
  bool any = false;
  for (unsigned first = 0; first < blockDim.x; first += 32) {
    const unsigned end = first + 32 < blockDim.x ? first + 32 : blockDim.x;
    if (!release(first, end, Status::kInWarp)) continue;
    turns[first / 32] ^= 1;
    any = true;
  }
  return release(0, blockDim.x, Status::kAtBarrier) || any;
}

inline void run_block() {
  std::memset(statuses, static_cast<int>(Status::kReady), blockDim.x);
  do {
    if (!_setjmp(scheduler)) resume(0);
  } while (release_all());
  for (unsigned i = 0; i < blockDim.x; ++i)
    if (statuses[i] != Status::kDone) {
      std::fprintf(stderr, "not all threads of a block reach a barrier\n");
      std::abort();
    }
}

// Calls a kernel with arguments that the pointers lead to.
template <auto kFunction>
struct Call;
template <class... Arguments, void (*kFunction)(Arguments...)>
struct Call<kFunction> {
  template <size_t... kPlaces>
  static void run(std::index_sequence<kPlaces...>) {
    kFunction(*static_cast<Arguments*>(arguments[kPlaces])...);
  }
  static void run() { run(std::index_sequence_for<Arguments...>{}); }
};

template <auto kFunction>
void launch(void** given, unsigned grid_x, unsigned grid_y, unsigned n_threads, size_t n_bytes) {
  gridDim = {grid_x, grid_y};
  blockDim = {n_threads};
  arguments = given;
  kernel = Call<kFunction>::run;
  dynamic_shared = std::realloc(dynamic_shared, n_bytes + 1);
  for (unsigned y = 0; y < grid_y; ++y)
    for (unsigned x = 0; x < grid_x; ++x) {
      blockIdx = {x, y};
      std::memset(dynamic_shared, 0xDD, n_bytes);  // never zeros by luck
      run_block();
    }
}

// Every lane of a warp gives 8 bytes, and sees those of all lanes.
inline const uint64_t* share(uint64_t bytes) {
  const unsigned warp = current / 32;
  uint64_t* const lanes = exchanged[turns[warp]][warp];
  lanes[current % 32] = bytes;
  wait(Status::kInWarp);
  return lanes;
}

// Every lane of a warp gives a value, and takes that of another.
template <class T>
T exchange(T value, unsigned from) {
  static_assert(sizeof(T) <= 8);
  uint64_t bytes = 0;
  std::memcpy(&bytes, &value, sizeof(T));
  std::memcpy(&value, share(bytes) + from, sizeof(T));
  return value;
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
  const uint64_t* given = shim::share(vote);
  unsigned votes = 0;
  for (int i = 0; i < 32; ++i) votes |= static_cast<unsigned>(given[i] & 1) << i;
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
