#include "trellis/chain.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "trellis/chunk_sums.hpp"
#include "trellis/chunks.hpp"
#include "trellis/lane_chain.hpp"
#include "trellis/lane_pieces.hpp"
#include "trellis/log_space.hpp"
#include "trellis/scaled.hpp"
#include "trellis/score_errors.hpp"
#include "trellis/viterbi.hpp"

namespace hedgerow {
namespace {

template <class T>
T* at(T* array, int64_t index) {
  return array == nullptr ? nullptr : array + index;
}

// Forward-backward of one sequence after the other, in scaled or in log space.
class SequencePosteriors {
 public:
  SequencePosteriors(const ChainScores& scores, const ScaledArcs& arcs, EdgeFactors<double>& edges,
                     const int32_t* labels, const ChainPosteriors& out, Stop& stop)
      : scores_(scores),
        arcs_(arcs),
        labels_(labels),
        out_(out),
        stop_(stop),
        fast_(scores, arcs, edges, out.pair_sums != nullptr),
        pairs_(out, scores.n_labels) {}

  // sums: (K, K), to which pair posteriors are added, or null. Those of scaled space come with
  // add_pair_sums.
  void fill(int64_t sequence, double* sums) {
    double* alphas = open(sequence);
    if (!arcs_.usable || !fast_.forward(sequence, path(sequence), alphas, stop_) ||
        (out_.need_backward() &&
         !fast_.backward(sequence, alphas, out_.weight(sequence), pairs_, stop_)))
      return fill_in_log_space(sequence, sums);
    write(sequence, fast_);
  }
  void fill_in_log_space(int64_t sequence, double* sums) {
    double* alphas = open(sequence);
    if (!slow_) slow_.emplace(scores_, stop_);
    slow_->forward(sequence, path(sequence), alphas);
    if (out_.need_backward())
      slow_->backward(sequence, alphas, out_.weight(sequence), sums, pairs_);
    write(sequence, *slow_);
  }
  void add_pair_sums(double* sums) const {
    if (sums != nullptr) fast_.add_pair_sums(sums);
  }

 private:
  const int32_t* path(int64_t sequence) const { return at(labels_, scores_.offsets[sequence]); }
  // Returns where alphas are kept for the way back, (T, K): in the marginals, if these are wanted.
  double* open(int64_t sequence) {
    pairs_.open(scores_.offsets[sequence]);
    if (out_.marginals) return out_.marginals + scores_.offsets[sequence] * scores_.n_labels;
    if (!out_.need_backward()) return nullptr;
    kept_.resize(std::max<size_t>(kept_.size(), scores_.length(sequence) * scores_.n_labels));
    return kept_.data();
  }
  template <class Chain>
  void write(int64_t sequence, const Chain& chain) {
    if (out_.log_z) out_.log_z[sequence] = chain.log_z();
    if (out_.log_likelihoods) out_.log_likelihoods[sequence] = chain.log_likelihood();
  }

  const ChainScores& scores_;
  const ScaledArcs& arcs_;
  const int32_t* labels_;
  const ChainPosteriors& out_;
  Stop& stop_;
  ScaledChain fast_;
  std::optional<LogChain> slow_;  // built when first needed
  PairRows pairs_;
  std::vector<double> kept_;
};

// With few labels: a sequence, or a piece of a long one, in each lane.
class InLanes {
 public:
  InLanes(const ChainScores& scores, const ScaledArcs& arcs, const int32_t* labels,
          const ChainPosteriors& out, Stop& stop)
      : scores_(scores),
        scaled_arcs_(arcs),
        arcs_(arcs),
        no_edges_(scores),
        labels_(labels),
        out_(out),
        stop_(stop),
        groups_(scores),
        n_pairs_(int64_t{scores.n_labels} * scores.n_labels) {}

  void fill(int n_threads) {
    ChunkSums pair_sums(out_.pair_sums, n_pairs_, groups_.n_chunks() + groups_.others.size());
    fill_pieces(pair_sums, n_threads);
    fill_groups(pair_sums, n_threads);
    pair_sums.finish();
  }

 private:
  SequencePosteriors sequence_by_sequence() {
    return {scores_, scaled_arcs_, no_edges_, labels_, out_, stop_};
  }
  std::unique_ptr<LaneChain> make_lanes() const {
    return std::make_unique<LaneChain>(scores_, arcs_, out_);
  }
  void write(int64_t sequence, const LaneTotals& totals) {
    if (out_.log_z) out_.log_z[sequence] = totals.log_z();
    if (out_.log_likelihoods) out_.log_likelihoods[sequence] = totals.log_likelihood();
  }

  void fill_groups(ChunkSums& pair_sums, int n_threads) {
    const auto run = [&](LaneChain& lanes, int64_t chunk, const StrandGroup<kLanes>& group) {
      double* sums = pair_sums.open(chunk);
      lanes.run(group, labels_, stop_);
      for (int l = 0; l < group.n_strands; ++l) {
        const int64_t s = group.sequences[l];
        const LaneTotals totals = lanes.totals(l);
        if (totals.refused) {
          sequence_by_sequence().fill_in_log_space(s, sums);
          continue;
        }
        if (sums) lanes.add_pair_sums(l, out_.weight(s), sums);
        write(s, totals);
      }
    };
    groups_.for_each(n_threads, stop_, [&] { return make_lanes(); }, run);
  }

  void fill_pieces(ChunkSums& pair_sums, int n_threads) {
    const std::vector<int64_t>& sequences = groups_.others;
    if (sequences.empty()) return;
    const LanePieces pieces(scores_, arcs_, sequences, n_threads, stop_);
    std::vector<LaneTotals> totals(pieces.n_pieces());
    std::vector<double> sums(out_.pair_sums ? pieces.n_pieces() * n_pairs_ : 0);
    const auto make_task = [&] {
      return [&, lanes = make_lanes()](int64_t index) {
        const StrandGroup<kLanes> group = pieces.group(index);
        lanes->run(group, labels_, stop_);
        for (int l = 0; l < group.n_strands; ++l) {
          const int64_t p = index * kLanes + l;
          totals[p] = lanes->totals(l);
          if (!sums.empty())
            lanes->add_pair_sums(l, out_.weight(group.sequences[l]), sums.data() + p * n_pairs_);
        }
      };
    };
    parallel_for_each_thread(pieces.n_groups(), n_threads, stop_, make_task);
    const auto n_chunks = static_cast<int64_t>(groups_.n_chunks());
    const auto n_sequences = static_cast<int64_t>(sequences.size());
    parallel_for(n_sequences, n_threads, stop_, [&](int64_t i) {
      double* table = pair_sums.open(n_chunks + i);
      LaneTotals all;
      all.refused = pieces.refused(i);
      const int64_t first = pieces.bounds()[i], end = pieces.bounds()[i + 1];
      for (int64_t p = first; p < end; ++p) all.add(totals[p]);
      if (all.refused) return sequence_by_sequence().fill_in_log_space(sequences[i], table);
      for (int64_t j = first * n_pairs_; table && j < end * n_pairs_; ++j)
        table[j % n_pairs_] += sums[j];
      write(sequences[i], all);
    });
  }

  const ChainScores& scores_;
  const ScaledArcs& scaled_arcs_;
  LaneArcs arcs_;
  EdgeFactors<double> no_edges_;
  const int32_t* labels_;
  const ChainPosteriors& out_;
  Stop& stop_;
  StrandGroups<kLanes> groups_;
  int64_t n_pairs_;
};

}  // namespace

void fill_posteriors(const ChainScores& scores, const int32_t* labels, const ChainPosteriors& out,
                     int n_threads, Stop& stop) {
  check_arcs(scores.arcs, scores.n_labels);
  const ScaledArcs arcs(scores);
  if (arcs.usable && scores.edges == nullptr && labels_fit_lanes(scores.n_labels))
    return InLanes(scores, arcs, labels, out, stop).fill(n_threads);
  const int64_t n_labels = scores.n_labels;
  const auto bounds = build_chunks(scores);
  ChunkSums pair_sums(out.pair_sums, n_labels * n_labels, bounds.size() - 1);
  const auto run = [&](EdgeFactors<double>& edges, int64_t chunk, int64_t first, int64_t end) {
    double* sums = pair_sums.open(chunk);
    SequencePosteriors one(scores, arcs, edges, labels, out, stop);
    for (int64_t s = first; s < end; ++s) one.fill(s, sums);
    one.add_pair_sums(sums);
  };
  for_each_chunk_with<EdgeFactors<double>>(scores, bounds, n_threads, stop, run);
  pair_sums.finish();
}

void fill_weighted_posteriors(const ChainScores& scores, const int32_t* labels,
                              const double* weights, const ChainPosteriors& out, int n_threads,
                              Stop& stop) {
  check_arcs(scores.arcs, scores.n_labels);
  const int64_t n_labels = scores.n_labels;
  const auto bounds = build_chunks(scores);
  ChunkSums pair_sums(out.pair_sums, n_labels * n_labels, bounds.size() - 1);
  for_each_chunk(scores, bounds, n_threads, stop, [&](int64_t chunk, int64_t first, int64_t end) {
    double* sums = pair_sums.open(chunk);
    LogChain chain(scores, stop);
    for (int64_t s = first; s < end; ++s) {
      const int64_t begin = scores.offsets[s];
      chain.weighted(s, labels + begin, weights + begin, out.marginals + begin * n_labels, sums,
                     at(out.pairs, begin * n_labels * n_labels));
      out.log_likelihoods[s] = chain.log_likelihood();
    }
  });
  pair_sums.finish();
}

void fill_viterbi(const ChainScores& scores, int32_t* labels, int n_threads, Stop& stop) {
  check_arcs(scores.arcs, scores.n_labels);
  for_each_chunk(scores, build_chunks(scores), n_threads, stop,
                 [&](int64_t, int64_t first, int64_t end) {
                   ViterbiChain chain(scores, stop);
                   for (int64_t s = first; s < end; ++s)
                     chain.decode(s, labels + scores.offsets[s]);
                 });
}

}  // namespace hedgerow
