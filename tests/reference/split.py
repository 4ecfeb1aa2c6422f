"""Minima with an L1 penalty by another method: every weight is a difference of two parts."""

import numpy as np
from scipy import optimize


def minimize_split(loss, start, reg_alpha):
    """Minimise ``loss(w) + reg_alpha * |w|_1``; `loss` gives its value and gradient.

    Both parts of a weight are not negative, so that the penalty is linear in them; SciPy supports
    such bounds. Returns the weights and the value.
    """
    n_weights = len(start)

    def joined(parts):
        return parts[:n_weights] - parts[n_weights:]

    def split_loss(parts):
        value, gradient = loss(joined(parts))
        slopes = np.concatenate([gradient + reg_alpha, reg_alpha - gradient])
        return value + reg_alpha * parts.sum(), slopes

    def search(parts):
        return optimize.minimize(
            split_loss,
            parts,
            jac=True,
            method="L-BFGS-B",
            bounds=optimize.Bounds(np.zeros(2 * n_weights), np.inf),
            options={
                "maxiter": 20_000,
                "maxfun": 100_000,
                "ftol": 1e-15,
                "gtol": 1e-9,
                "maxcor": 20,
            },
        )

    # Its line search may stop far from the minimum: restart until there is no improvement.
    before, found = np.inf, search(np.concatenate([start.clip(min=0), (-start).clip(min=0)]))
    while found.fun < before - 1e-12 * abs(found.fun):
        before, found = found.fun, search(found.x)
    return joined(found.x), float(found.fun)
