// Forward-backward, derivatives of the loss, and labels: everything that is computed from scores.
#include "trellis.cuh"
#if N_LABELS <= 8
#include "trellis_few.cuh"
#else
#include "trellis_many.cuh"
#endif
#include "decode.cuh"
#include "tangent.cuh"
#include "weighted.cuh"
