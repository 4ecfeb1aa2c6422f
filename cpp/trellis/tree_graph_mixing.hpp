// Bounds on the curvature of tree-shaped graphs, from the shares of a change that neighbours pass
// on.
//
// With alpha_{s,v} = 1 - sum_j min_i P(y_v = j | y_s = i) and N(s) the neighbours of a node:
//   nodes (Chen et al., 2015, Theorem 4.1)
//     beta_{s->t} = alpha_{t,s} (1 + sum over h in N(s) without t of beta_{h->s})
//     gamma_t     = 2 (1 + sum over s in N(t) of beta_{s->t})
//   edges
//     eps_{h->a}  = 1 + alpha_{a,h} sum over g in N(h) without a of eps_{g->h}
//     gamma_(a,b) = 2 (1 + sum over h in N(a) without b of eps_{h->a}
//                        + sum over h in N(b) without a of eps_{h->b})
// The paper's Theorem 4.2 for edges holds for chains only: it counts one distance for each side of
// an edge (a, b), but a tree has one for each neighbour. The distance of an edge f = (u, s), with u
// the nearer end, is that of y_u, which is at most the product of the rates on the path. So an edge
// next to a node counts 1, and those beyond it are multiplied by the rate.
#pragma once

#include <cstdint>
#include <vector>

#include "trellis/tree_graph_order.hpp"

namespace hedgerow {

struct GraphRates {
  std::vector<double> down;  // (n,) alpha_{parent,node}, 0 at roots
  std::vector<double> up;    // (n,) alpha_{node,parent}, 0 at roots

  void open(int64_t n) {
    down.assign(n, 0.0);
    up.assign(n, 0.0);
  }

  // Calls write(node, gamma of the node, gamma of the edge to its parent) for all nodes.
  template <class Write>
  void fill_gammas(const GraphOrder& order, Write write) const {
    const int64_t n = order.size();
    // Sums over the children, and then over all neighbours, of the messages to a node.
    std::vector<double> betas(n, 0.0), epsilons(n, 0.0);
    const auto beta_up = [&](int64_t i, double below) { return down[i] * (1.0 + below); };
    const auto epsilon_up = [&](int64_t i, double below) { return 1.0 + down[i] * below; };
    for (int64_t i = n - 1; i >= 0; --i) {
      const int64_t parent = order.parents[i];
      if (parent < 0) continue;
      betas[parent] += beta_up(i, betas[i]);
      epsilons[parent] += epsilon_up(i, epsilons[i]);
    }
    for (int64_t i = 0; i < n; ++i) {
      const int64_t parent = order.parents[i];
      double edge = 0.0;
      if (parent >= 0) {
        const double others = betas[parent] - beta_up(i, betas[i]);
        const double edges = epsilons[parent] - epsilon_up(i, epsilons[i]);
        edge = 2.0 * (1.0 + edges + epsilons[i]);
        betas[i] += up[i] * (1.0 + others);
        epsilons[i] += 1.0 + up[i] * edges;
      }
      write(i, 2.0 * (1.0 + betas[i]), edge);
    }
  }
};

}  // namespace hedgerow
