// Scores that trees add to, block after block of positions.
#pragma once

#include <algorithm>
#include <cstdint>

#include "parallel.hpp"

namespace hedgerow {

inline constexpr int64_t kWalkBlock = 128;  // positions that are walked together

// What to add to, and how much each tree adds.
struct ScoreTable {
  int n_outputs;
  const double* tree_weights;  // (T,)
  const double* scores;        // (N, n_outputs)
  double* out;                 // (N, n_outputs); may be the same as scores
};

// Calls walk(begin, end) for all blocks of positions, whose rows of `out` hold the scores by then;
// each thread has its own walk, made by make_walk().
template <int64_t kBlock = kWalkBlock, class MakeWalk>
void walk_blocks(int64_t n_positions, const ScoreTable& table, int n_threads, Stop& stop,
                 const MakeWalk& make_walk) {
  const int64_t n_blocks = (n_positions + kBlock - 1) / kBlock;
  constexpr int64_t kBlocksPerTask = 8 * kWalkBlock / kBlock;
  parallel_for_each_thread((n_blocks + kBlocksPerTask - 1) / kBlocksPerTask, n_threads, stop, [&] {
    return [&, walk = make_walk()](int64_t task) mutable {
      const int64_t last = std::min((task + 1) * kBlocksPerTask, n_blocks);
      for (int64_t block = task * kBlocksPerTask; block < last; ++block) {
        stop.check();
        const int64_t begin = block * kBlock;
        const int64_t end = std::min(begin + kBlock, n_positions);
        if (table.out != table.scores)
          std::copy(table.scores + begin * table.n_outputs, table.scores + end * table.n_outputs,
                    table.out + begin * table.n_outputs);
        walk(begin, end);
      }
    };
  });
}

}  // namespace hedgerow
