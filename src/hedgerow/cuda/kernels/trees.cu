// Trees: from derivatives of the loss to the trees of a round, one for each label, and from trees
// to scores. The results are the same as on the CPU, to the last bit.
#include "examples.cuh"
#include "growth.cuh"
#include "histograms.cuh"
#include "splits.cuh"
#include "tree_nodes.cuh"
#include "walk.cuh"
