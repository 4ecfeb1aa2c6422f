#include "trees/partitioner.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>

#include "trees/divider.hpp"
#include "trees/fractions.hpp"
#include "trees/sides.hpp"
#include "trees/surrogates.hpp"

namespace hedgerow {
namespace {

// Copies positions to the left, to the right or to both, all in order: is_left(i) and is_right(i)
// tell where the i-th goes.
template <class IsLeft, class IsRight>
void copy_sides(std::span<const int32_t> positions, const IsLeft& is_left, const IsRight& is_right,
                int32_t* left, int32_t* right) {
  constexpr int64_t kTogether = 1024;
  int32_t lefts[kTogether], rights[kTogether];
  const int64_t n = std::ssize(positions);
  for (int64_t begin = 0; begin < n; begin += kTogether) {
    const int64_t end = std::min(begin + kTogether, n);
    // Each is written to both sides and kept where it should be, so there is no branch to
    // mispredict.
    int64_t n_left = 0, n_right = 0;
    for (int64_t i = begin; i < end; ++i) {
      lefts[n_left] = rights[n_right] = positions[i];
      n_left += is_left(i);
      n_right += is_right(i);
    }
    left = std::copy_n(lefts, n_left, left);
    right = std::copy_n(rights, n_right, right);
  }
}

}  // namespace

void fill_joint(const ContextRows& rows, std::span<const int32_t> positions,
                std::initializer_list<const OpenNode*> nodes, Crew& crew) {
  std::vector<ContextRows::JointOf> sets;
  for (const OpenNode* node : nodes) sets.push_back({node->contexts, node->space->joint.data()});
  crew.share_pieces(std::ssize(positions), kPieceSize, [&](int64_t begin, int64_t end) {
    rows.fill_joint(positions.subspan(begin, end - begin), sets);
  });
  for (const OpenNode* node : nodes) {
    if (node->divided == nullptr) continue;
    crew.share_pieces(node->n_examples(), kPieceSize, [&](int64_t begin, int64_t end) {
      for (const int32_t t : node->positions.subspan(begin, end - begin)) {
        // The share of the position that is here.
        const auto here = static_cast<float>(node->space->sums[t].curvature());
        node->space->joint[t] *= here / static_cast<float>(rows.sum(t, node->contexts).curvature());
      }
    });
  }
}

Children Partitioner::part(GrowingTree& tree, const OpenNode& parent) {
  const Split& split = parent.split;
  if (data_.is_label(split.column)) return part_by_contexts(tree, parent);
  if (missing_.method == MissingMethod::kSurrogate) return part_by_surrogates(tree, parent, false);
  if (missing_.method == MissingMethod::kFractional) {
    const double share = note_fraction(tree, parent);
    if (split.known != parent.total || parent.parts != nullptr)
      return part_by_fractions(tree, parent, share);
  }
  if (crew_.n_pieces(parent.n_examples() / kPieceSize) == 1) return part_alone(parent);
  return part_marked(parent, mark_sides(parent, false), split.left);
}

Children Partitioner::make_leaves(GrowingTree& tree, const OpenNode& parent) {
  WideSum left = parent.split.left;
  if (missing_.leaves_out() && !data_.is_label(parent.split.column)) {
    if (missing_.method == MissingMethod::kSurrogate) return part_by_surrogates(tree, parent, true);
    if (tree.rows != nullptr) return part(tree, parent);
    const double share = note_fraction(tree, parent);
    if (parent.split.known != parent.total)
      left += Divider(data_, parent.split, share, crew_, stop_)
                  .left_of_missing(parts_of(parent)->arrays(), parent.n_examples());
  }
  return {OpenNode{.total = left}, OpenNode{}};
}

// The share of missing values that go left: the same as that of known values.
double Partitioner::note_fraction(GrowingTree& tree, const OpenNode& parent) {
  return tree.nodes[parent.node].fraction =
             static_cast<float>(static_cast<double>(parent.split.left.curvature()) /
                                static_cast<double>(parent.split.known.curvature()));
}

// Examples of a piece that go to either side, some of them to both, and the sum of what goes left.
struct Partitioner::Counts {
  int64_t left = 0, right = 0;
  WideSum left_total{};
};

// The children of a node that may both have examples at a position. Those on the left get arrays of
// their own.
class Partitioner::SharedParts {
 public:
  SharedParts(Partitioner& partitioner, const GrowingTree& tree, const OpenNode& parent)
      : space(std::make_shared<Space>(partitioner.pool_, parent.n_examples(),
                                      partitioner.data_.bins().n_positions, tree.is_joint())),
        partitioner_(partitioner),
        parent_(parent),
        before_((parent.n_examples() + kPieceSize - 1) / kPieceSize + 1) {}

  // The counts of the piece that begins at an example.
  Counts& of_piece(int64_t begin) { return before_[begin / kPieceSize + 1]; }

  // Copies positions once all pieces are counted; is_left(i, t) says whether the i-th example,
  // which is at position t, goes left.
  template <class IsLeft, class IsRight>
  Children copy(const IsLeft& is_left, const IsRight& is_right) {
    for (size_t i = 1; i < before_.size(); ++i) {
      before_[i].left += before_[i - 1].left;
      before_[i].right += before_[i - 1].right;
      before_[i].left_total += before_[i - 1].left_total;
    }
    partitioner_.crew_.share_pieces(
        parent_.n_examples(), kPieceSize, [&](int64_t begin, int64_t end) {
          const Counts& first = before_[begin / kPieceSize];
          const std::span some = parent_.positions.subspan(begin, end - begin);
          copy_sides(
              some, [&](int64_t i) { return is_left(begin + i, some[i]); },
              [&](int64_t i) { return is_right(begin + i, some[i]); },
              space->positions.data() + first.left, parent_.spare.data() + first.right);
        });
    const auto n_left = static_cast<size_t>(before_.back().left);
    const auto n_right = static_cast<size_t>(before_.back().right);
    OpenNode left{.first = 0,
                  .positions = {space->positions.data(), n_left},
                  .spare = {space->spare.data(), n_left},
                  .total = before_.back().left_total,
                  .space = space};
    OpenNode right{.first = parent_.first,
                   .positions = parent_.spare.first(n_right),
                   .spare = parent_.positions.first(n_right),
                   .space = parent_.space};
    return {std::move(left), std::move(right)};
  }

  std::shared_ptr<Space> space;

 private:
  Partitioner& partitioner_;
  const OpenNode& parent_;
  std::vector<Counts> before_;  // (n_pieces + 1,) by piece, later summed over the pieces before
};

// The children of a node in one pass, used if no thread is idle: examples on the right move up in
// their array, those on the left go to the spare one.
Children Partitioner::part_alone(const OpenNode& parent) {
  const Sides sides(data_, parent.split, false);
  const int64_t n = parent.n_examples();
  int64_t n_left = 0;
  for (int64_t begin = 0; begin < n; begin += kPieceSize) {
    stop_.check();
    n_left += sides.part(parent.positions.subspan(begin, std::min(kPieceSize, n - begin)),
                         parent.spare.data() + n_left, parent.positions.data() + begin - n_left);
  }
  const std::span on_left = parent.spare.first(n_left);
  const std::span on_right = parent.positions.first(n - n_left);
  OpenNode left{.first = parent.first,
                .positions = on_left,
                .spare = parent.positions.last(n_left),
                .total = parent.split.left,
                .space = parent.space,
                .contexts = parent.contexts,
                .divided = parent.divided};
  OpenNode right{.first = parent.first + n_left,
                 .positions = on_right,
                 .spare = parent.spare.last(n - n_left),
                 .space = parent.space,
                 .contexts = parent.contexts,
                 .divided = parent.divided};
  return {std::move(left), std::move(right)};
}

// Marks the sides of a node's examples, and returns how many go left in each piece of them.
std::vector<int64_t> Partitioner::mark_sides(const OpenNode& parent, bool leaves_out) {
  const int64_t n = parent.n_examples();
  uint8_t* marks = parent.space->goes_left.data() + parent.first;
  const Sides sides(data_, parent.split, leaves_out);
  std::vector<int64_t> n_left((n + kPieceSize - 1) / kPieceSize);
  crew_.share_pieces(n, kPieceSize, [&](int64_t begin, int64_t end) {
    stop_.check();
    n_left[begin / kPieceSize] =
        sides.fill(parent.positions.subspan(begin, end - begin), marks + begin);
  });
  return n_left;
}

// The children of a node whose examples are marked, with this many on the left in each piece. The
// partitioned examples are in what was the spare room.
Children Partitioner::part_marked(const OpenNode& parent,
                                  const std::vector<int64_t>& n_left_of_pieces,
                                  const WideSum& left_total) {
  const size_t n_left = partition(parent, n_left_of_pieces);
  OpenNode left{.first = parent.first,
                .positions = parent.spare.first(n_left),
                .spare = parent.positions.first(n_left),
                .total = left_total,
                .space = parent.space,
                .contexts = parent.contexts,
                .divided = parent.divided};
  OpenNode right{.first = parent.first + static_cast<int64_t>(n_left),
                 .positions = parent.spare.subspan(n_left),
                 .spare = parent.positions.subspan(n_left),
                 .space = parent.space,
                 .contexts = parent.contexts,
                 .divided = parent.divided};
  return {std::move(left), std::move(right)};
}

// The children of a node by a split on a previous label. Both may have examples at a position, in
// different contexts.
Children Partitioner::part_by_contexts(const GrowingTree& tree, const OpenNode& parent) {
  const ContextRows& rows = *tree.rows;
  std::array<uint8_t, 256> is_left;
  for (int bin = 0; bin < 256; ++bin)
    is_left[bin] = contains(parent.split.left_bins, static_cast<uint8_t>(bin));
  const int lag = parent.split.column - data_.bins().n_columns();
  const auto select = [&](bool on_left) {
    return rows.select(parent.contexts, lag, is_left.data(), on_left);
  };
  const std::vector<int32_t> on_left = select(true);
  auto [left, right] = part_sums(tree, parent, [&](int64_t, int32_t t, const Sum&) {
    return parent.divided == nullptr ? rows.sum(t, on_left) : parent.divided->sum(t, on_left);
  });
  left.contexts = on_left;
  right.contexts = select(false);
  left.divided = right.divided = parent.divided;
  if (tree.is_joint()) fill_joint(rows, parent.positions, {&left, &right}, crew_);
  return {std::move(left), std::move(right)};
}

// The children of a node by a split on a column with missing values, which go both ways, this share
// of them to the left.
Children Partitioner::part_by_fractions(const GrowingTree& tree, const OpenNode& parent,
                                        double share) {
  if (tree.rows != nullptr) return divide_rows(tree, parent, share);
  const int64_t n = parent.n_examples();
  const auto on_right = parts_of(parent), on_left = std::make_shared<DividedExamples>(pool_, n);
  const auto [n_left, n_right, left_of_missing] =
      Divider(data_, parent.split, share, crew_, stop_)
          .divide(on_right->arrays(), n, on_left->arrays());
  OpenNode left{.positions = {on_left->arrays().positions, static_cast<size_t>(n_left)},
                .total = parent.split.left + left_of_missing,
                .space = parent.space,
                .parts = on_left};
  OpenNode right{.positions = {on_right->arrays().positions, static_cast<size_t>(n_right)},
                 .space = parent.space,
                 .parts = on_right};
  return {std::move(left), std::move(right)};
}

// The parts of a node's examples, which may all be whole.
std::shared_ptr<DividedExamples> Partitioner::parts_of(const OpenNode& node) {
  if (node.parts != nullptr) return node.parts;
  const auto parts = std::make_shared<DividedExamples>(pool_, node.n_examples());
  const Sum* sums = node.space->sums.data();
  crew_.share_pieces(node.n_examples(), kPieceSize, [&](int64_t begin, int64_t end) {
    const ExampleArrays out = parts->arrays();
    for (int64_t i = begin; i < end; ++i) {
      out.positions[i] = node.positions[i];
      out.sums[i] = sums[node.positions[i]];
      out.leasts[i] = least_part(out.sums[i]);
    }
  });
  return parts;
}

// The same where examples are rows: each context of a row is divided like a separate example.
Children Partitioner::divide_rows(const GrowingTree& tree, const OpenNode& parent, double share) {
  mark_sides(parent, true);
  const uint8_t* marks = parent.space->goes_left.data() + parent.first;
  const ContextRows& rows = *tree.rows;
  const auto make_rows = [&] {
    return std::make_shared<DividedRows>(pool_, parent.n_examples(), rows.n_contexts(),
                                         data_.bins().n_positions);
  };
  const auto on_left = make_rows(), on_right = make_rows();
  auto [left, right] = part_sums(tree, parent, [&](int64_t i, int32_t t, const Sum&) {
    const Sum* here = parent.divided == nullptr ? rows.at(t) : parent.divided->at(t);
    const Sum* at_root = rows.at(t);
    Sum *to_left = on_left->assign(i, t), *to_right = on_right->assign(i, t), total;
    for (const int32_t c : parent.contexts) {
      to_left[c] = marks[i] == kNoSide ? left_fraction(here[c], share, least_part(at_root[c]))
                                       : here[c].only_if(marks[i] == kLeftSide);
      to_right[c] = here[c] - to_left[c];
      total += to_left[c];
    }
    return total;
  });
  left.divided = on_left;
  right.divided = on_right;
  left.contexts = right.contexts = parent.contexts;
  if (tree.is_joint()) fill_joint(rows, parent.positions, {&left, &right}, crew_);
  return {std::move(left), std::move(right)};
}

// The children of a node whose examples may go both ways: left_of(i, t, sum) is the part of the
// i-th example's sum that goes left; t is its position.
template <class LeftOf>
Children Partitioner::part_sums(const GrowingTree& tree, const OpenNode& parent,
                                const LeftOf& left_of) {
  SharedParts parts(*this, tree, parent);
  Sum *sums = parent.space->sums.data(), *left_sums = parts.space->sums.data();
  crew_.share_pieces(parent.n_examples(), kPieceSize, [&](int64_t begin, int64_t end) {
    stop_.check();
    Counts& counts = parts.of_piece(begin);
    for (int64_t i = begin; i < end; ++i) {
      const int32_t t = parent.positions[i];
      const Sum left = left_of(i, t, sums[t]);
      left_sums[t] = left;
      sums[t] -= left;
      counts.left_total += left;
      counts.left += !left.is_empty();
      counts.right += !sums[t].is_empty();
    }
  });
  return parts.copy([&](int64_t, int32_t t) { return !left_sums[t].is_empty(); },
                    [&](int64_t, int32_t t) { return !sums[t].is_empty(); });
}

// The children of a node by a split on a column; where the value is missing, surrogates decide.
// Unless both are leaves, the child with fewer known values already has its histogram.
Children Partitioner::part_by_surrogates(GrowingTree& tree, const OpenNode& parent,
                                         bool are_leaves) {
  std::vector<int64_t> n_left = mark_sides(parent, true);
  uint8_t* marks = parent.space->goes_left.data() + parent.first;
  const Split& split = parent.split;
  const BySide by_side(pool_, parent.positions, marks);
  const std::span missing_ones = by_side.of(kNoSide);
  const bool is_left = by_side.of(kLeftSide).size() <= by_side.of(kRightSide).size();
  const auto count_side = [&](std::span<const int32_t> positions) {
    return builder_.count({positions, parent.space->sums.data()}, parent.histogram.get());
  };
  std::unique_ptr<Histogram> fewer = count_side(by_side.of(is_left ? kLeftSide : kRightSide));
  std::unique_ptr<Histogram> missing;
  if (!missing_ones.empty()) missing = count_side(missing_ones);
  std::vector<Surrogate>& surrogates = tree.nodes[parent.node].surrogates;
  surrogates = find_surrogates(data_,
                               {{parent.histogram.get(), parent.total},
                                {missing.get(), parent.total - split.known},
                                {fewer.get(), is_left ? split.left : split.known - split.left},
                                is_left},
                               split, choice_.of_surrogates(tree, parent), tree.directions);
  builder_.give_back(std::move(missing));
  const std::vector<uint8_t> answers = find_sides_by(surrogates, split, data_, missing_ones);
  // Without branches, which would be mispredicted.
  const Sum* sums = parent.space->sums.data();
  PooledArray<int32_t> joining(pool_, std::ssize(missing_ones));  // those with a histogram
  size_t n_joining = 0;
  int64_t gradient = 0, curvature = 0;  // of those that go left
  for (size_t i = 0; i < answers.size(); ++i) {
    const int32_t t = missing_ones[i];
    const Sum on_left = sums[t].only_if(answers[i] == kLeftSide);
    gradient += on_left.gradient();
    curvature += on_left.curvature();
    joining[n_joining] = t;
    n_joining += (answers[i] == kLeftSide) == is_left;
  }
  const WideSum left_total = split.left + WideSum(gradient, curvature);
  if (are_leaves) {
    builder_.give_back(std::move(fewer));
    return {OpenNode{.total = left_total}, OpenNode{}};
  }
  if (n_joining > 0) {
    std::unique_ptr<Histogram> more = count_side({joining.data(), n_joining});
    add(*fewer, *more);
    builder_.give_back(std::move(more));
  }
  const uint8_t* answer = answers.data();
  std::array<uint16_t, kPieceSize> listed;
  for (int64_t begin = 0; begin < parent.n_examples(); begin += kPieceSize) {
    const int64_t n = std::min(kPieceSize, parent.n_examples() - begin);
    const int64_t n_missing = list_side(kNoSide, marks + begin, n, listed.data());
    for (int64_t j = 0; j < n_missing; ++j) {
      marks[begin + listed[j]] = *answer;
      n_left[begin / kPieceSize] += *answer++;
    }
  }
  auto children = part_marked(parent, n_left, left_total);
  (is_left ? children.first : children.second).histogram = std::move(fewer);
  return children;
}

// Copies a node's positions to its spare room, those that go left first, both sides in order;
// returns how many go left. n_left_of_pieces: how many go left in each piece.
size_t Partitioner::partition(const OpenNode& parent,
                              const std::vector<int64_t>& n_left_of_pieces) {
  const uint8_t* goes_left = parent.space->goes_left.data() + parent.first;
  std::vector<int64_t> n_left(n_left_of_pieces.size() + 1);  // before each piece
  std::partial_sum(n_left_of_pieces.begin(), n_left_of_pieces.end(), n_left.begin() + 1);
  crew_.share_pieces(parent.n_examples(), kPieceSize, [&](int64_t begin, int64_t end) {
    const int64_t left = n_left[begin / kPieceSize];
    const int64_t right = n_left.back() + begin - left;
    copy_sides(
        parent.positions.subspan(begin, end - begin),
        [&](int64_t i) { return goes_left[begin + i]; },
        [&](int64_t i) { return 1 - goes_left[begin + i]; }, parent.spare.data() + left,
        parent.spare.data() + right);
  });
  return static_cast<size_t>(n_left.back());
}

}  // namespace hedgerow
