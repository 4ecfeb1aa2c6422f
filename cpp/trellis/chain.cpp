#include "trellis/chain.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "trellis/chunk_sums.hpp"
#include "trellis/chunks.hpp"
#include "trellis/lane_chain.hpp"
#include "trellis/lane_edges.hpp"
#include "trellis/lane_pieces.hpp"
#include "trellis/log_space.hpp"
#include "trellis/mixing_log.hpp"
#include "trellis/scaled.hpp"
#include "trellis/score_errors.hpp"
#include "trellis/single_edges.hpp"
#include "trellis/viterbi.hpp"

namespace hedgerow {
namespace {

template <class T>
T* at(T* array, int64_t index) {
  return array == nullptr ? nullptr : array + index;
}

// Tables that a chunk of sequences adds to, null where they are not wanted.
struct ChunkTables {
  SumTable pair_sums;       // (K, K)
  SumTable pair_curvature;  // (K, K)
};

// The tables of all chunks.
class Tables {
 public:
  Tables(const ChainPosteriors& out, int64_t n_labels, size_t n_chunks)
      : pair_sums_(out.pair_sums, n_labels * n_labels, n_chunks, SumGrid(out.bound)),
        pair_curvature_(out.mixing ? out.mixing->pair_curvature : nullptr, n_labels * n_labels,
                        n_chunks, curvature_grid(out.mixing ? out.mixing->bound : 0.0)) {}

  ChunkTables open(int64_t chunk) { return {pair_sums_.open(chunk), pair_curvature_.open(chunk)}; }
  void finish() {
    pair_sums_.finish();
    pair_curvature_.finish();
  }

 private:
  ChunkSums pair_sums_, pair_curvature_;
};

// Forward-backward of one sequence after the other, in scaled or in log space.
class SequencePosteriors {
 public:
  // single: null if it is not wanted
  SequencePosteriors(const ChainScores& scores, const ScaledArcs& arcs, EdgeFactors& edges,
                     const int32_t* labels, const ChainPosteriors& out, Stop& stop,
                     SingleEdges* single = nullptr)
      : scores_(scores),
        arcs_(arcs),
        labels_(labels),
        out_(out),
        stop_(stop),
        single_(single),
        fast_(scores, arcs, edges, out),
        pairs_(out, scores.n_labels) {}

  // Sums from scaled space are added to the tables later, by add_tables.
  void fill(int64_t sequence, const ChunkTables& tables) {
    stop_.check();
    if (single_ && single_->fill(sequence, path(sequence))) return write(sequence, *single_);
    double* alphas = open(sequence);
    const auto forward = [&] { return fast_.forward(sequence, path(sequence), alphas, stop_); };
    const double weight = out_.weight(sequence);
    bool done = arcs_.usable && forward();
    if (done && fast_.gives_all_in_single()) {
      if (fast_.backward_in_single(sequence, alphas, weight, stop_)) return write(sequence, fast_);
      done = forward();
    }
    if (done && out_.need_backward())
      done = fast_.backward(sequence, alphas, weight, pairs_, stop_);
    if (!done) return fill_in_log_space(sequence, tables);
    write(sequence, fast_);
  }
  void fill_in_log_space(int64_t sequence, const ChunkTables& tables) {
    double* alphas = open(sequence);
    if (!slow_) slow_.emplace(scores_, stop_);
    slow_->forward(sequence, path(sequence), alphas);
    if (out_.need_backward())
      slow_->backward(sequence, alphas, out_.weight(sequence), tables.pair_sums, pairs_);
    write(sequence, *slow_);
    if (out_.mixing)
      LogMixing(scores_, scores_.length(sequence))
          .fill(sequence, *out_.mixing, tables.pair_curvature, stop_);
  }
  void add_tables(const ChunkTables& tables) const {
    if (tables.pair_sums) fast_.add_pair_sums(tables.pair_sums.sums);
    if (tables.pair_curvature) fast_.add_pair_curvature(tables.pair_curvature.sums);
    if (single_) single_->add_tables(tables.pair_sums.sums, tables.pair_curvature.sums);
  }

 private:
  const int32_t* path(int64_t sequence) const { return at(labels_, scores_.offsets[sequence]); }
  // Returns where alphas are kept for the backward pass, (T, K): in the marginals, if these are
  // wanted.
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
  SingleEdges* single_;
  ScaledChain fast_;
  std::optional<LogChain> slow_;  // built when first needed
  PairRows pairs_;
  std::vector<double> kept_;
};

// With few labels: one sequence in each lane, and those that are too long for a lane.
class InLanes {
 public:
  InLanes(const ChainScores& scores, const ScaledArcs& arcs, const int32_t* labels,
          const ChainPosteriors& out, Stop& stop)
      : scores_(scores),
        scaled_arcs_(arcs),
        arcs_(arcs),
        labels_(labels),
        out_(out),
        stop_(stop),
        groups_(scores),
        n_pairs_(int64_t{scores.n_labels} * scores.n_labels) {}

  void fill(int n_threads) {
    Tables tables(out_, scores_.n_labels, groups_.n_chunks() + groups_.others.size());
    if (scores_.has_edges())
      fill_others(tables, n_threads);
    else
      fill_pieces(tables, n_threads);
    fill_groups(tables, n_threads);
    tables.finish();
  }

 private:
  std::unique_ptr<LaneDriver> make_lanes() const {
    if (scores_.has_edges()) return std::make_unique<LaneEdges>(scores_, scaled_arcs_, out_);
    return std::make_unique<LaneChain>(scores_, arcs_, out_);
  }
  void fill_in_log_space(int64_t sequence, const ChunkTables& tables) {
    EdgeFactors edges(scores_);
    SequencePosteriors(scores_, scaled_arcs_, edges, labels_, out_, stop_)
        .fill_in_log_space(sequence, tables);
  }
  void write(int64_t sequence, const LaneTotals& totals) {
    if (out_.log_z) out_.log_z[sequence] = totals.log_z();
    if (out_.log_likelihoods) out_.log_likelihoods[sequence] = totals.log_likelihood();
  }
  void add_tables(const LaneDriver& lanes, int lane, int64_t sequence, const ChunkTables& tables) {
    if (tables.pair_sums) lanes.add_pair_sums(lane, out_.weight(sequence), tables.pair_sums);
    if (tables.pair_curvature)
      lanes.add_pair_curvature(lane, out_.mixing->weight(sequence), tables.pair_curvature);
  }

  void fill_groups(Tables& tables, int n_threads) {
    const auto run = [&](LaneDriver& lanes, int64_t chunk, const StrandGroup<kLanes>& group) {
      const ChunkTables own = tables.open(chunk);
      lanes.run(group, labels_, stop_);
      for (int l = 0; l < group.n_strands; ++l) {
        const int64_t s = group.sequences[l];
        const LaneTotals totals = lanes.totals(l);
        if (totals.refused) {
          fill_in_log_space(s, own);
          continue;
        }
        add_tables(lanes, l, s, own);
        write(s, totals);
      }
    };
    groups_.for_each(n_threads, stop_, [&] { return make_lanes(); }, run);
  }

  // Sequence by sequence.
  void fill_others(Tables& tables, int n_threads) {
    const std::vector<int64_t>& sequences = groups_.others;
    parallel_for(static_cast<int64_t>(sequences.size()), n_threads, stop_, [&](int64_t i) {
      const ChunkTables own = tables.open(static_cast<int64_t>(groups_.n_chunks()) + i);
      EdgeFactors edges(scores_);
      SequencePosteriors one(scores_, scaled_arcs_, edges, labels_, out_, stop_);
      one.fill(sequences[i], own);
      one.add_tables(own);
    });
  }

  // A piece of a sequence in each lane.
  void fill_pieces(Tables& tables, int n_threads) {
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
            lanes->add_pair_sums(l, out_.weight(group.sequences[l]),
                                 {sums.data() + p * n_pairs_, SumGrid(out_.bound)});
        }
      };
    };
    parallel_for_each_thread(pieces.n_groups(), n_threads, stop_, make_task);
    const auto n_chunks = static_cast<int64_t>(groups_.n_chunks());
    const auto n_sequences = static_cast<int64_t>(sequences.size());
    parallel_for(n_sequences, n_threads, stop_, [&](int64_t i) {
      const ChunkTables own = tables.open(n_chunks + i);
      LaneTotals all;
      all.refused = pieces.refused(i);
      const int64_t first = pieces.bounds()[i], end = pieces.bounds()[i + 1];
      for (int64_t p = first; p < end; ++p) all.add(totals[p]);
      if (all.refused) return fill_in_log_space(sequences[i], own);
      for (int64_t j = first * n_pairs_; own.pair_sums && j < end * n_pairs_; ++j)
        own.pair_sums.add(j % n_pairs_, sums[j]);
      write(sequences[i], all);
    });
  }

  const ChainScores& scores_;
  const ScaledArcs& scaled_arcs_;
  LaneArcs arcs_;
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
  if (arcs.usable && labels_fit_lanes(scores.n_labels))
    return InLanes(scores, arcs, labels, out, stop).fill(n_threads);
  fill_posteriors_in_turn(scores, labels, out, n_threads, stop);
}

bool takes_single_edges(int n_labels) { return !labels_fit_lanes(n_labels); }

bool posteriors_give_mixing(int n_labels, bool edges) {
  return edges || !labels_fit_lanes(n_labels);
}

void fill_posteriors_in_turn(const ChainScores& scores, const int32_t* labels,
                             const ChainPosteriors& out, int n_threads, Stop& stop) {
  ScaledArcs arcs(scores);
  if (out.mixing != nullptr) arcs.fill_single();
  const auto bounds = build_chunks(scores);
  Tables tables(out, scores.n_labels, bounds.size() - 1);
  struct Scratch {
    EdgeFactors edges;
    SingleEdges single;
  };
  const auto make_scratch = [&] {
    return std::make_unique<Scratch>(EdgeFactors(scores), SingleEdges(scores, out));
  };
  const auto run = [&](Scratch& scratch, int64_t chunk, int64_t first, int64_t end) {
    const ChunkTables own = tables.open(chunk);
    SequencePosteriors one(scores, arcs, scratch.edges, labels, out, stop, &scratch.single);
    for (int64_t s = first; s < end; ++s) one.fill(s, own);
    one.add_tables(own);
  };
  for_each_chunk_with(scores, bounds, n_threads, stop, make_scratch, run);
  tables.finish();
}

void fill_mixing_of(const ChainScores& scores, int64_t sequence, const MixingBounds& out,
                    const SumTable& curvature, Stop& stop) {
  ScaledArcs arcs(scores);
  arcs.fill_single();
  EdgeFactors edges(scores);
  ChainPosteriors wanted{};
  wanted.mixing = &out;
  const ChunkTables tables{{nullptr, SumGrid(0.0)}, curvature};
  SequencePosteriors one(scores, arcs, edges, nullptr, wanted, stop);
  one.fill(sequence, tables);
  one.add_tables(tables);
}

void fill_weighted_posteriors(const ChainScores& scores, const int32_t* labels,
                              const double* weights, const ChainPosteriors& out, int n_threads,
                              Stop& stop) {
  check_arcs(scores.arcs, scores.n_labels);
  const int64_t n_labels = scores.n_labels;
  const auto bounds = build_chunks(scores);
  ChunkSums pair_sums(out.pair_sums, n_labels * n_labels, bounds.size() - 1, SumGrid(out.bound));
  for_each_chunk(scores, bounds, n_threads, stop, [&](int64_t chunk, int64_t first, int64_t end) {
    const SumTable sums = pair_sums.open(chunk);
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
