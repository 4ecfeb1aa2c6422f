// Long sequences cut into pieces, for few labels: a piece has a lane to itself, so that a single
// sequence fills all lanes and keeps many threads busy.
//
// A piece needs to know what comes before and after it. All paths through piece p are summed up in
// a matrix,
//   M_p[i, k] = sum over the labellings of the piece that end in k, after label i before the piece,
// of the products of their factors and arcs. With alpha and beta at the ends of the pieces,
//   alpha_p[k] = sum_i alpha_{p-1}[i] M_p[i, k],    beta_{p-1}[i] = sum_k M_p[i, k] beta_p[k].
// How a sequence is cut depends only on its length, so that results depend neither on the number of
// threads nor on other sequences.
#pragma once

#include <cstdint>
#include <vector>

#include "parallel.hpp"
#include "trellis/chain.hpp"
#include "trellis/lane_chain.hpp"
#include "trellis/strands.hpp"

namespace hedgerow {

class LanePieces {
 public:
  // Cuts the sequences, and computes what comes before and after each piece.
  LanePieces(const ChainScores& scores, const LaneArcs& arcs, const std::vector<int64_t>& sequences,
             int n_threads, Stop& stop);

  // Groups of pieces; piece p is in lane p % kLanes of group p / kLanes.
  int64_t n_groups() const { return (n_pieces() + kLanes - 1) / kLanes; }
  StrandGroup<kLanes> group(int64_t index) const;

  int64_t n_pieces() const { return static_cast<int64_t>(pieces_.size()); }
  // The pieces of sequences[i] are bounds[i] .. bounds[i + 1] - 1.
  const std::vector<int64_t>& bounds() const { return bounds_; }
  // Whether sequences[i] needs log space.
  bool refused(int64_t i) const { return refused_[i] != 0; }

 private:
  struct Piece {
    int64_t sequence;
    int64_t begin;  // first position in the batch
    int64_t length;
    bool first, last;  // of its sequence
  };
  void cut(const std::vector<int64_t>& sequences);
  void fill_products(const LaneArcs& arcs, int n_threads, Stop& stop);
  // Both are for the pieces first .. end-1 of a sequence, and return false if it needs log space.
  bool fill_starts(int64_t first, int64_t end);
  bool fill_ends(int64_t first, int64_t end);

  const ChainScores& scores_;
  std::vector<Piece> pieces_;
  std::vector<int64_t> bounds_{0};  // (sequences + 1,)
  std::vector<uint8_t> refused_;    // (sequences,)
  // Row i of a product is scaled by a power of two of its own: M[i, k] = products[i, k]
  // 2^exponents[i]
  std::vector<double> products_;       // (pieces, K, K)
  std::vector<double> exponents_;      // (pieces, K)
  std::vector<uint8_t> bad_products_;  // (pieces,) 1 where a product is not precise
  std::vector<double> starts_, ends_;  // (pieces, K) alpha before, and beta at the end of a piece
};

}  // namespace hedgerow
