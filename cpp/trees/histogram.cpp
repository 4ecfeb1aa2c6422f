#include "trees/histogram.hpp"

namespace hedgerow {
namespace {

template <class AnySum>
void add_sums(BinSums<AnySum>& histogram, const BinSums<AnySum>& more) {
  for (size_t i = 0; i < more.full.size(); ++i) histogram.full[i] += more.full[i];
  for (size_t o = 0; o < more.outside.size(); ++o) histogram.outside[o] += more.outside[o];
  for (size_t i = 0; i < more.sparse.size(); ++i) histogram.sparse[i].sum += more.sparse[i].sum;
}

template <class AnySum>
void subtract_sums(BinSums<AnySum>& of_parent, BinSums<AnySum>& counted) {
  for (size_t i = 0; i < counted.full.size(); ++i) of_parent.full[i] -= counted.full[i];
  for (size_t o = 0; o < counted.outside.size(); ++o) of_parent.outside[o] -= counted.outside[o];
  for (size_t c = 0; c < counted.contexts.size(); ++c) of_parent.contexts[c] -= counted.contexts[c];
  size_t n_counted = 0, n_rest = 0;
  for (size_t i = 0; i < counted.sparse.size(); ++i) {
    const SlotSum<AnySum> slot = counted.sparse[i];
    const SlotSum<AnySum> rest{slot.place, of_parent.sparse[i].sum - slot.sum};
    counted.sparse[n_counted] = slot;
    of_parent.sparse[n_rest] = rest;
    n_counted += !slot.sum.is_empty();
    n_rest += !rest.sum.is_empty();
  }
  counted.sparse.resize(n_counted);
  of_parent.sparse.resize(n_rest);
}

}  // namespace

void subtract(Histogram& of_parent, Histogram& counted) {
  std::visit(
      [&]<class AnySum>(BinSums<AnySum>& sums) {
        subtract_sums(sums, std::get<BinSums<AnySum>>(counted));
      },
      of_parent);
}

void add(Histogram& histogram, const Histogram& more) {
  std::visit(
      [&]<class AnySum>(BinSums<AnySum>& sums) { add_sums(sums, std::get<BinSums<AnySum>>(more)); },
      histogram);
}

}  // namespace hedgerow
