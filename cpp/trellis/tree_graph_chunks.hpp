// Which sequences of tree-shaped graphs are processed together, and by which thread: first with
// probabilities, then with logarithms.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "parallel.hpp"
#include "trellis/tree_graph_rows.hpp"
#include "trellis/tree_graph_states.hpp"

namespace hedgerow {
namespace {

// Cuts sequences into chunks, one task each, at most 64 of them, and these into runs that are
// processed together. Everything depends only on the data, so that sums over a chunk, added in
// chunk order, are the same for any number of threads.
struct GraphChunks {
  // All sequences.
  explicit GraphChunks(const GraphScores& scores)
      : GraphChunks(scores, all_sequences(scores.n_sequences)) {}
  GraphChunks(const GraphScores& scores, std::vector<int64_t> chosen)
      : sequences(std::move(chosen)) {
    int64_t n_positions = 0, in_run = 0, in_chunk = 0;
    for (const int64_t s : sequences) n_positions += scores.length(s);
    const int n_states = scores.automaton ? scores.automaton->n_states() : scores.n_labels;
    const int64_t per_node = int64_t{padded(n_states)} * (scores.edges ? scores.n_labels : 1);
    const int64_t run = std::max<int64_t>((kLowLimits ? 1 << 8 : 1 << 14) / per_node, 64);
    const int64_t chunk = std::max(n_positions / 64 + 1, run);
    for (size_t i = 0; i < sequences.size(); ++i) {
      const bool last = i + 1 == sequences.size();
      in_run += scores.length(sequences[i]), in_chunk += scores.length(sequences[i]);
      const bool ends = last || in_chunk >= chunk;
      if (ends || in_run >= run) runs.push_back(i + 1), in_run = 0;
      if (ends) chunks.push_back(runs.size() - 1), in_chunk = 0;
    }
  }
  int64_t n_chunks() const { return static_cast<int64_t>(chunks.size()) - 1; }
  std::span<const int64_t> run(size_t r) const {
    return std::span(sequences).subspan(runs[r], runs[r + 1] - runs[r]);
  }

  std::vector<int64_t> sequences;
  std::vector<size_t> runs{0};    // first of the sequences of each run, then their number
  std::vector<size_t> chunks{0};  // first run of each chunk, then their number

 private:
  static std::vector<int64_t> all_sequences(int64_t n) {
    std::vector<int64_t> numbers(n);
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
  }
};

// Calls run(pass, chunk, chosen sequences) for every run of every chunk: first with a Pass<Fast>,
// and then, for the sequences that it refuses, with a Pass<Logs>. If any is refused, run must not
// have added to any sums. run returns whether the pass refused none. Passes are constructed as
// Pass<Algebra>(scores, states, arguments..., stop), once per thread.
template <template <class> class Pass, class Fast, class Run, class... Arguments>
void for_each_graph(const GraphScores& scores, const GraphChunks& chunks, int n_threads, Stop& stop,
                    Run run, const Arguments&... arguments) {
  const GraphStates states(scores, Fast::kLogs), log_states(scores, true);
  const auto make_task = [&] {
    struct Passes {
      Pass<Fast> fast;
      std::unique_ptr<Pass<Logs>> slow;
    };
    auto passes = std::unique_ptr<Passes>(
        new Passes{Pass<Fast>(scores, states, arguments..., stop), nullptr});
    return [&, passes = std::move(passes)](int64_t chunk) {
      std::vector<int64_t> kept, left;
      for (size_t r = chunks.chunks[chunk]; r < chunks.chunks[chunk + 1]; ++r) {
        kept.assign(chunks.run(r).begin(), chunks.run(r).end()), left.clear();
        while (!kept.empty() && !run(passes->fast, chunk, std::span<const int64_t>(kept))) {
          std::vector<int64_t> others;
          for (size_t i = 0; i < kept.size(); ++i)
            (passes->fast.refused(i) ? left : others).push_back(kept[i]);
          kept = std::move(others);
        }
        for (const int64_t s : left) {
          if (!passes->slow)
            passes->slow = std::make_unique<Pass<Logs>>(scores, log_states, arguments..., stop);
          run(*passes->slow, chunk, std::span<const int64_t>(&s, 1));
        }
      }
    };
  };
  parallel_for_each_thread(chunks.n_chunks(), n_threads, stop, make_task);
}

}  // namespace
}  // namespace hedgerow
