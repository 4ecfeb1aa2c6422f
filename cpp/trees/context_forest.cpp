#include "trees/context_forest.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "simd.hpp"
#include "simd_float.hpp"

namespace hedgerow {
namespace {

constexpr int64_t kRun = 1 << 9;  // positions that are scored at a time, in whole sequences
constexpr int64_t kPiece = 256;   // of these, by one thread

// Values of classes as floats, of_class[c, t] = values[t, c] for n positions t, at most kFloats;
// 0 for the class after the last, and where there is no position.
HEDGEROW_INLINE void transpose_values(const double* values, int n, int n_classes, float* of_class) {
  int first = 0;
  for (; first + kFloats <= n_classes; first += kFloats) {
    Floats tile[kFloats];
    for (int t = 0; t < kFloats; ++t) {
      const double* row = values + int64_t{t} * n_classes + first;
      tile[t] = t < n ? join_as_floats(load(row), load(row + kLanes)) : broadcast(0.0f);
    }
    transpose(tile);
    for (int c = 0; c < kFloats; ++c) store(of_class + (first + c) * kFloats, tile[c]);
  }
  std::fill(of_class + first * kFloats, of_class + (n_classes + 1) * kFloats, 0.0f);
  for (int c = first; c < n_classes; ++c)
    for (int t = 0; t < n; ++t)
      of_class[c * kFloats + t] = static_cast<float>(values[int64_t{t} * n_classes + c]);
}

// out[t, e] = edges[t, e] + of_class[of_edges[e], t] for n positions t, at most kFloats; `out` may
// be the edges. A gather for each position would take longer than the transposes.
HEDGEROW_INLINE void add_to_edges(const int32_t* of_edges, const float* of_class, int n,
                                  int64_t n_edges, const float* edges, float* out) {
  int64_t first = 0;
  for (; first + kFloats <= n_edges; first += kFloats) {
    Floats tile[kFloats];
    for (int i = 0; i < kFloats; ++i)
      tile[i] = load(of_class + int64_t{of_edges[first + i]} * kFloats);
    transpose(tile);
    for (int t = 0; t < kFloats; ++t)
      if (t < n) {
        const int64_t at = t * n_edges + first;
        HEDGEROW_PREFETCH(edges + at + kFloats * n_edges);  // the next positions
        store(out + at, load(edges + at) + tile[t]);
      }
  }
  for (int64_t e = first; e < n_edges; ++e)
    for (int t = 0; t < n; ++t) {
      const int64_t at = t * n_edges + e;
      out[at] = edges[at] + of_class[int64_t{of_edges[e]} * kFloats + t];
    }
}

// To the edges of n positions, (n, E), from values (n, n_classes); of_class: scratch memory
HEDGEROW_CLONES void add_values_to_edges(const double* values, int n_classes,
                                         const int32_t* of_edges, int64_t n, int64_t n_edges,
                                         const float* edges, float* out, float* of_class) {
  for (int64_t t = 0; t < n; t += kFloats) {
    const int n_here = static_cast<int>(std::min<int64_t>(kFloats, n - t));
    transpose_values(values + t * n_classes, n_here, n_classes, of_class);
    add_to_edges(of_edges, of_class, n_here, n_edges, edges + t * n_edges, out + t * n_edges);
  }
}

// out = edges, plus others unless they are null.
HEDGEROW_CLONES void widen_edges(const float* edges, const double* others, int64_t n,
                                 double* HEDGEROW_RESTRICT out) {
  if (others == nullptr)
    for (int64_t i = 0; i < n; ++i) out[i] = edges[i];
  else
    for (int64_t i = 0; i < n; ++i) out[i] = edges[i] + others[i];
}

// A tree, evaluated for the contexts of its output.
class TreeOfContexts {
 public:
  TreeOfContexts(const TreeArrays& trees, int64_t tree, const Contexts& contexts,
                 int32_t first_label_column)
      : trees_(trees),
        first_(trees.tree_offsets[tree]),
        output_(trees.outputs[tree]),
        contexts_(contexts),
        first_label_column_(first_label_column) {}

  // The answers of a context to the splits on labels that it reaches.
  std::vector<bool> answers(int context) const {
    std::vector<bool> found;
    std::vector<int64_t> open{0};
    while (!open.empty()) {
      const int64_t node = first_ + open.back();
      open.pop_back();
      if (trees_.columns[node] < 0) continue;
      if (asks_label(node)) {
        found.push_back(is_left(node, context));
        open.push_back(trees_.lefts[node] + !found.back());
      } else {
        open.push_back(trees_.lefts[node] + 1);
        open.push_back(trees_.lefts[node]);
      }
    }
    return found;
  }

  // Appends what is left of the tree for a context.
  void append_rest(int context, TreeArrays& out) const {
    const int64_t first = out.n_nodes();
    std::vector<int64_t> nodes{resolve(0, context)};
    for (size_t i = 0; i < nodes.size(); ++i) {
      const int64_t node = first_ + nodes[i];
      int32_t left = -1;
      if (trees_.columns[node] >= 0) {
        left = static_cast<int32_t>(nodes.size());
        nodes.push_back(resolve(trees_.lefts[node], context));
        nodes.push_back(resolve(trees_.lefts[node] + 1, context));
      }
      append_node(trees_, node, left, out);
    }
    out.outputs.push_back(static_cast<int32_t>(out.outputs.size()));
    out.tree_offsets.push_back(first + std::ssize(nodes));
  }

 private:
  bool asks_label(int64_t node) const { return trees_.columns[node] >= first_label_column_; }
  bool is_left(int64_t node, int context) const {
    const int lag = trees_.columns[node] - first_label_column_;
    return goes_left(trees_, node, contexts_.label(output_, context, lag));
  }
  // The node that a context reaches by splits on labels.
  int64_t resolve(int64_t node, int context) const {
    while (asks_label(first_ + node))
      node = trees_.lefts[first_ + node] + !is_left(first_ + node, context);
    return node;
  }
  const TreeArrays& trees_;
  int64_t first_;
  int output_;
  const Contexts& contexts_;
  int32_t first_label_column_;
};

}  // namespace

class ContextForest::LayerBuilder {
 public:
  explicit LayerBuilder(const Contexts& contexts)
      : contexts_(contexts),
        of_edges_(contexts.n_edges(), kNone),
        of_nodes_(contexts.n_outputs(), kNone),
        of_firsts_(contexts.n_outputs(), kNone) {}

  bool has(int output) const { return of_nodes_[output] >= 0 || of_firsts_[output] >= 0; }

  void add(const TreeOfContexts& tree, int output, double weight) {
    std::map<std::vector<bool>, int32_t> classes;
    std::vector<int32_t> of_contexts;
    for (int c = 0; c < contexts_.n_contexts(output); ++c) {
      const auto number = static_cast<int32_t>(arrays_.n_trees());
      const auto [found, is_new] = classes.try_emplace(tree.answers(c), number);
      of_contexts.push_back(found->second);
      if (!is_new) continue;
      tree.append_rest(c, arrays_);
      weights_.push_back(weight);
    }
    if (classes.size() == 1) {
      of_nodes_[output] = of_contexts[0];
      return;
    }
    has_edges_ = true;
    of_firsts_[output] = of_contexts.back();
    for (size_t c = 0; c + 1 < of_contexts.size(); ++c)
      of_edges_[contexts_.edges(output)[c]] = of_contexts[c];
  }

  Layer build() && {
    arrays_.round_offsets.push_back(arrays_.n_trees());
    const auto n_classes = static_cast<int>(arrays_.n_trees());
    std::replace(of_edges_.begin(), of_edges_.end(), kNone, n_classes);
    return {Forest(n_classes, std::move(arrays_), std::move(weights_)), std::move(of_edges_),
            std::move(of_nodes_), std::move(of_firsts_), has_edges_};
  }

 private:
  const Contexts& contexts_;
  TreeArrays arrays_;
  std::vector<double> weights_;
  std::vector<int32_t> of_edges_, of_nodes_, of_firsts_;
  bool has_edges_ = false;
};

ContextForest::ContextForest(const Forest& forest, const Contexts& contexts,
                             int32_t first_label_column)
    : n_outputs_(forest.n_outputs()), n_edges_(contexts.n_edges()) {
  const TreeArrays& trees = forest.trees();
  for (size_t r = 1; r < trees.round_offsets.size(); ++r) {
    std::optional<LayerBuilder> layer;
    for (int64_t i = trees.round_offsets[r - 1]; i < trees.round_offsets[r]; ++i) {
      const int output = trees.outputs[i];
      if (layer && layer->has(output)) {
        layers_.push_back(std::move(*layer).build());
        layer.reset();
      }
      if (!layer) layer.emplace(contexts);
      layer->add(TreeOfContexts(trees, i, contexts, first_label_column), output,
                 forest.tree_weights()[i]);
    }
    if (layer) layers_.push_back(std::move(*layer).build());
  }
  for (const Layer& layer : layers_) n_columns_ = std::max(n_columns_, layer.classes.n_columns());
}

void ContextForest::add_layer(const Layer& layer, const double* values, int64_t begin, int64_t end,
                              const uint8_t* is_first, const Scores& scores) const {
  const int n_classes = layer.classes.n_outputs();
  for (int64_t t = begin; t < end; ++t) {
    const double* of_class = values + t * n_classes;
    const std::vector<int32_t>& more = is_first[t] ? layer.of_firsts : layer.of_nodes;
    for (int k = 0; k < n_outputs_; ++k) {
      const int32_t own = layer.of_nodes[k] >= 0 ? layer.of_nodes[k] : more[k];
      const double score = scores.nodes[t * n_outputs_ + k];
      scores.out_nodes[t * n_outputs_ + k] = own < 0 ? score : score + of_class[own];
    }
  }
  if (!layer.has_edges && scores.edges == scores.out_edges) return;
  PaddedFloats of_class((n_classes + 1) * kFloats);
  add_values_to_edges(values + begin * n_classes, n_classes, layer.of_edges.data(), end - begin,
                      n_edges_, scores.edges + begin * n_edges_,
                      scores.out_edges + begin * n_edges_, of_class.data());
}

// Threads score different runs, or parts of the same one where there are fewer runs than threads.
void ContextForest::add_scores(const BinTable& bins, const Sequences& sequences,
                               const Scores& scores, int n_threads, Stop& stop) const {
  const int64_t n_sequences = sequences.n_sequences, *offsets = sequences.offsets;
  std::vector<int64_t> runs{0};  // the first sequence of each, and the end
  for (int64_t s = 1; s <= n_sequences; ++s)
    if (s == n_sequences || offsets[s + 1] - offsets[runs.back()] > kRun) runs.push_back(s);
  const int64_t n_runs = std::ssize(runs) - 1;
  const bool by_run = n_runs >= n_threads;
  parallel_for_each_thread(n_runs, by_run ? n_threads : 1, stop, [&] {
    return [&, values = LargeVector<double>()](int64_t run) mutable {
      add_to_run(bins, sequences, runs[run], runs[run + 1], scores, values, by_run ? 1 : n_threads,
                 stop);
    };
  });
}

void ContextForest::add_to_run(const BinTable& bins, const Sequences& sequences, int64_t begin,
                               int64_t end, const Scores& scores, LargeVector<double>& values,
                               int n_threads, Stop& stop) const {
  const int64_t first = sequences.offsets[begin], n = sequences.offsets[end] - first;
  std::vector<int64_t> offsets;
  std::vector<uint8_t> is_first(n, 0);
  for (int64_t s = begin; s <= end; ++s) {
    offsets.push_back(sequences.offsets[s] - first);
    if (offsets.back() < n) is_first[offsets.back()] = 1;
  }
  const BinTable part = bins.from(first, n);
  const Sequences of_run{end - begin, offsets.data(),
                         sequences.parents == nullptr ? nullptr : sequences.parents + first};
  Scores of_part = scores.from(first, n_outputs_, n_edges_);
  for (int64_t t = 0; t < n && of_run.parents; ++t) is_first[t] = of_run.parents[t] < 0;
  for (const Layer& layer : layers_) {
    values.assign(n * layer.classes.n_outputs(), 0.0);
    layer.classes.add_scores(part, of_run, values.data(), values.data(), n_threads, stop);
    parallel_for_pieces(n, kPiece, n_threads, stop, [&](int64_t from, int64_t to) {
      add_layer(layer, values.data(), from, to, is_first.data(), of_part);
    });
    of_part.nodes = of_part.out_nodes;  // for the next layer
    of_part.edges = of_part.out_edges;
  }
  if (!layers_.empty()) return;
  if (scores.nodes != scores.out_nodes)
    std::copy_n(of_part.nodes, n * n_outputs_, of_part.out_nodes);
  if (scores.edges != scores.out_edges) std::copy_n(of_part.edges, n * n_edges_, of_part.out_edges);
}

void fill_edges(const float* edges, const double* others, int64_t n_positions, int64_t n_edges,
                double* out, int n_threads, Stop& stop) {
  constexpr int64_t kNumbersPerTask = 1 << 14;
  parallel_for_pieces(n_positions * n_edges, kNumbersPerTask, n_threads, stop,
                      [&](int64_t begin, int64_t end) {
                        widen_edges(edges + begin, others == nullptr ? nullptr : others + begin,
                                    end - begin, out + begin);
                      });
}

}  // namespace hedgerow
