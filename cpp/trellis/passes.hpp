// Passes over a batch, with probabilities where these are precise, otherwise with logarithms.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "trellis/groups.hpp"
#include "trellis/semiring.hpp"

namespace hedgerow {

// Calls run(chunk, pass, group) for every group: first with a Pass<SumProduct>, and then, for the
// lanes that it refuses, with a Pass<LogSum>. If pass.refused(lane) for some lane, run returns
// false, and must not have added to any sums. Each thread has its own passes, constructed as
// Pass<Semiring>(scores, weights, arguments..., stop); the one in logarithms only when needed.
template <template <class> class Pass, class Run, class... Arguments>
void for_each_group(const AutomatonScores& scores, const Groups& groups, int n_threads, Stop& stop,
                    Run run, const Arguments&... arguments) {
  const TermWeights weights(scores, SumProduct::kLogarithms);
  const TermWeights log_weights(scores, LogSum::kLogarithms);
  struct Passes {
    Pass<SumProduct> fast;
    std::optional<Pass<LogSum>> slow;
  };
  const auto make_passes = [&] {
    return std::unique_ptr<Passes>(
        new Passes{Pass<SumProduct>(scores, weights, arguments..., stop), std::nullopt});
  };
  const auto run_both = [&](Passes& passes, int64_t chunk, const Group& group) {
    const auto run_fast = [&](const Group& kept) { return run(chunk, passes.fast, kept); };
    const auto refused = [&](int lane) { return passes.fast.refused(lane); };
    const auto run_slow = [&](const Group& left) {
      if (!passes.slow) passes.slow.emplace(scores, log_weights, arguments..., stop);
      run(chunk, *passes.slow, left);
    };
    run_group(group, run_fast, refused, run_slow);
  };
  groups.for_each(n_threads, stop, make_passes, run_both);
}

}  // namespace hedgerow
