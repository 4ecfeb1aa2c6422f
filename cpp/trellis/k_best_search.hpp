// The k best labellings of a sequence, whose labels are chosen one by one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <utility>
#include <vector>

namespace hedgerow {

// Best first. A candidate is given by its parent, a labelling already found, by the first position
// where it differs, and by its label there; from there on it has the best labels. Its loss is that
// of its parent plus what its label at that position costs: only scores of one position are
// subtracted from each other, so that long sequences lose no digits.
//
// A Walk has
//   const std::vector<double>& values(int64_t t)   (K,) the score of the best labelling with each
//                                                  label at t, given those chosen before; -inf for
//                                                  none. They may be shifted by a constant.
//   void choose(int64_t t, int32_t label)          chooses a label, for t = 0, 1, ... in turn
class KBestSearch {
 public:
  // Calls found(rank, labels, loss) for up to n_best labellings of `length` positions; returns how
  // many there are.
  template <class Walk, class Found>
  int64_t run(Walk& walk, int64_t length, int64_t n_best, Found found) {
    labels_.clear();
    candidates_.clear();
    candidates_.insert({0.0, 0, -1, 0, 0});
    n_made_ = 1;
    int64_t rank = 0;
    while (rank < n_best && !candidates_.empty()) {
      const Candidate candidate = *candidates_.begin();
      candidates_.erase(candidates_.begin());
      complete(walk, length, candidate, rank, n_best);
      found(rank, labels_.back().data(), candidate.loss);
      ++rank;
    }
    return rank;
  }

 private:
  struct Candidate {
    double loss;
    int64_t number;    // of equal losses the candidate that was added first comes first
    int64_t parent;    // rank of its parent, -1 for the best labelling
    int64_t position;  // the first where it differs from its parent
    int32_t label;     // its label there
    bool operator<(const Candidate& other) const {
      return loss != other.loss ? loss < other.loss : number < other.number;
    }
  };

  // Finds all labels of a candidate, and adds the candidates whose parent it is.
  template <class Walk>
  void complete(Walk& walk, int64_t length, const Candidate& candidate, int64_t rank,
                int64_t n_best) {
    std::vector<int32_t> labels(length);
    int64_t t = 0;
    const auto choose = [&](int32_t label) {
      labels[t] = label;
      walk.choose(t++, label);
    };
    if (candidate.parent >= 0) {
      while (t < candidate.position) choose(labels_[candidate.parent][t]);
      choose(candidate.label);
    }
    while (t < length) {
      const std::vector<double>& values = walk.values(t);
      const auto best = std::max_element(values.begin(), values.end());
      const auto label = static_cast<int32_t>(best - values.begin());
      for (int32_t k = 0; k < static_cast<int32_t>(values.size()); ++k) {
        if (k == label || values[k] == -std::numeric_limits<double>::infinity()) continue;
        add({candidate.loss + (*best - values[k]), n_made_++, rank, t, k}, n_best - rank - 1);
      }
      choose(label);
    }
    labels_.push_back(std::move(labels));
  }

  // Keeps only the n_wanted best candidates.
  void add(const Candidate& candidate, int64_t n_wanted) {
    const auto n_candidates = static_cast<int64_t>(candidates_.size());
    if (n_candidates >= n_wanted && (n_wanted == 0 || *candidates_.rbegin() < candidate)) return;
    candidates_.insert(candidate);
    if (n_candidates >= n_wanted) candidates_.erase(std::prev(candidates_.end()));
  }

  int64_t n_made_ = 0;
  std::vector<std::vector<int32_t>> labels_;  // of the labellings found, by rank
  std::set<Candidate> candidates_;
};

}  // namespace hedgerow
