"""Minima with an L1 penalty by another way: every weight as a difference of two parts."""

import numpy as np
from scipy import optimize


def minimize_split(loss, start, reg_alpha):
    """Minimise ``loss(w) + reg_alpha * |w|_1``; `loss` gives its value and gradient.

    Both parts of a weight are not negative, so that the penalty is linear in them; scipy knows
    how to keep to such bounds. Returns the weights and the value.
    """
    n_weights = len(start)

    def joined(parts):
        return parts[:n_weights] - parts[n_weights:]

    def split_loss(parts):
        value, gradient = loss(joined(parts))
        slopes = np.concatenate([gradient + reg_alpha, reg_alpha - gradient])
        return value + reg_alpha * parts.sum(), slopes

    found = optimize.minimize(
        split_loss,
        np.concatenate([start.clip(min=0), (-start).clip(min=0)]),
        jac=True,
        method="L-BFGS-B",
        bounds=optimize.Bounds(np.zeros(2 * n_weights), np.inf),
        options={"maxiter": 20_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 20},
    )
    return joined(found.x), float(found.fun)
