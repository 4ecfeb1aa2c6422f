"""Bundle method: for losses that are convex but not smooth, such as a hinge.

Value and slope at a point define a plane that is below the risk everywhere. The maximum of the
planes so far is a model of the risk, and the minimum of model plus penalty is a lower bound, which
shows how far away the minimum can be (Teo et al. 2010, Bundle Methods for Regularized Risk
Minimization). With few planes, the minimum of the model is far from the true one. So the next point
is chosen near the best one so far: where the model promises to close about half of the gap between
the best loss and the bound (Lemaréchal et al. 1995, New Variants of Bundle Methods).

With planes a_i w + b_i and a pull towards the best point c, the minimum of

    max_i (a_i w + b_i) + lambda/2 |w|^2 + pull/2 |w - c|^2

is at w = (pull c - sum_i s_i a_i) / (lambda + pull), where the shares s, which are not negative and
sum to 1, minimise

    |sum_i s_i a_i|^2 / (2 (lambda + pull)) - sum_i s_i (b_i + pull / (lambda + pull) a_i c).

Whatever the shares, sum_i s_i b_i - |sum_i s_i a_i|^2 / (2 lambda) is a lower bound.

If weights have different penalties, a term with lambda is a sum over groups of weights with equal
penalties, each with its own lambda; products are stored by group. The pull is the same for all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hedgerow.lbfgs import Descent, Iterations, dot
from hedgerow.state import State, read_array, read_weights, require

__all__ = ["Bundle", "minimize_bundle"]

Vector = NDArray[np.float64]
Risk = Callable[[Vector], tuple[float, Vector]]

# Maximum number of planes. On the OCR letters, more make hardly any difference.
MEMORY = 50
# Minimum and maximum share of the gap that the model must promise to close; doubling the pull about
# halves it.
PROMISE = (0.35, 0.75)
# Arrays with one number per plane.
BY_PLANE = ("ages", "offsets", "bound_shares", "step_shares")
# Arrays per penalty: one number, one per plane, one per pair of planes.
BY_GROUP = ("squares", "at_centre", "gram")
# Accuracy of the shares, in terms of the loss, relative to the gap.
PRECISION = 0.01


def minimize_bundle(risk: Risk, bundle: Bundle, iterations: Iterations) -> Descent:
    """Minimise ``risk(w) + sum(reg_lambda / 2 * w^2)``; `risk` returns value and subgradient.

    `bundle` is the state so far. Stops after `max_iter` iterations, each of which evaluates the
    risk once, or when the gap between the loss and its lower bound is at most `tol` times the loss.
    Yields the best weights so far.
    """
    while len(iterations.losses) < iterations.max_iter and not bundle.is_within(iterations.tol):
        bundle.evaluate(risk, bundle.next_point())
        iterations.losses.append(bundle.loss)
        yield bundle.best, bundle.loss
    found = iterations.end(bundle.best, bundle.loss)
    return replace(found, converged=bundle.is_within(iterations.tol))


class Bundle:
    """The best weights so far, their loss, and the lower bound from the planes."""

    def __init__(
        self, planes: _Planes, reg_lambda: float | Vector, pull: float, loss: float, bound: float
    ) -> None:
        self._planes = planes
        self._reg_lambda = reg_lambda
        self._lambdas = planes.groups.lambdas
        self._pull = pull
        self.loss = loss
        self.bound = bound

    @classmethod
    def begin(
        cls, risk: Risk, start: Vector, reg_lambda: float | Vector, floor: float = -np.inf
    ) -> Bundle:
        """Start with the risk at one point.

        `reg_lambda` is the strength of the penalty, of all weights or of each, (W,). `floor` is a
        lower bound on the risk, if there is one; it helps in the first iterations.
        """
        if not np.min(reg_lambda) > 0:
            raise ValueError(
                f"reg_lambda is {reg_lambda}; without a penalty there is no stopping criterion: "
                "pass a reg_lambda greater than 0"
            )
        planes = _Planes(start, _Groups.of(reg_lambda, len(start)))
        bundle = cls(planes, reg_lambda, float(np.max(reg_lambda)), np.inf, floor)
        if floor > -np.inf:
            bundle._planes.add(np.zeros_like(start), floor)
        bundle.evaluate(risk, start)
        return bundle

    def pack(self) -> dict[str, Vector]:
        """The state as arrays."""
        figures = np.array([self._pull, self.loss, self.bound])
        return {"bundle.figures": figures, **self._planes.pack()}

    @staticmethod
    def is_in(state: State) -> bool:
        """Whether a file contains the output of `pack`."""
        return "bundle.figures" in state.tensors

    @classmethod
    def unpack(cls, state: State, n_weights: int, reg_lambda: float | Vector) -> Bundle:
        """Read the output of `pack` with this penalty; raises ModelFileError."""
        pull, loss, bound = read_weights(state, "bundle.figures", (3,)).tolist()
        require(0 <= pull < 1e100, "its step control is out of range")
        largest = max(abs(loss), abs(bound))
        require(
            largest < 1e100 and bound - loss <= 1e-6 * abs(loss), "its loss and bound are not valid"
        )
        planes = _Planes.unpack(state, n_weights, _Groups.of(reg_lambda, n_weights))
        return cls(planes, reg_lambda, pull, loss, bound)

    @property
    def best(self) -> Vector:
        """The best weights so far."""
        return self._planes.centre

    def is_within(self, tol: float) -> bool:
        """Whether the gap between the loss and its lower bound is at most `tol` times the loss."""
        return self.loss - self.bound <= tol * abs(self.loss)

    def evaluate(self, risk: Risk, point: Vector) -> None:
        """Add the plane at a point, which may be the best one, and increase the bound."""
        value, slope = risk(point)
        planes = self._planes
        loss = value + 0.5 * _sum(self._lambdas * planes.groups.products(point[None], point)[:, 0])
        if loss < self.loss:
            self.loss = loss
            planes.move_centre(point)
        planes.add(slope, value - dot(slope, point))
        shares = planes.bound_shares = self._solve(0.0, planes.bound_shares)
        squares = np.einsum("i,gij,j->g", shares, planes.gram, shares)
        penalty = 0.5 * _sum(squares / self._lambdas)
        self.bound = max(self.bound, dot(shares, planes.offsets) - penalty)

    def next_point(self) -> Vector:
        """The point where the model promises to close about half of the gap."""
        planes, (least, most) = self._planes, PROMISE
        for _ in range(20):
            planes.step_shares = self._solve(self._pull, planes.step_shares)
            promise = (self.loss - self._model()) / (self.loss - self.bound)
            if least <= promise <= most:
                break
            self._pull *= 2.0 if promise > most else 0.5
        point: Vector = np.einsum("i,ij->j", -planes.step_shares, planes.slopes)
        point += self._pull * planes.centre
        point /= self._reg_lambda + self._pull
        return point

    def _solve(self, pull: float, shares: Vector) -> Vector:
        """Shares of the planes in the minimum of model, penalty and pull."""
        planes, totals = self._planes, self._lambdas + pull
        return _minimize_on_simplex(
            np.einsum("g,gij->ij", 1 / totals, planes.gram),
            planes.offsets + np.einsum("g,gi->i", pull / totals, planes.at_centre),
            shares,
            PRECISION * min(self.loss - self.bound, abs(self.loss)),
        )

    def _model(self) -> float:
        """The model plus penalty at the point given by the pull and the shares of the planes."""
        planes, shares, pull = self._planes, self._planes.step_shares, self._pull
        totals = self._lambdas + pull
        sums = np.einsum("gij,j->gi", planes.gram, shares)
        values = np.einsum("g,gi->i", 1 / totals, pull * planes.at_centre - sums)
        crosses = np.einsum("gi,i->g", sums - 2 * pull * planes.at_centre, shares)
        squares = (pull**2 * planes.squares + crosses) / totals**2
        return float(np.max(values + planes.offsets)) + 0.5 * _sum(self._lambdas * squares)


def _sum(numbers: Vector) -> float:
    return float(numbers.sum())


@dataclass(frozen=True)
class _Groups:
    """Groups of weights with the same penalty.

    Attributes
    ----------
    lambdas : (G,)
        The penalties.
    spans : list of slice
        From the first weight of each penalty to the last.
    members : list of (length of the span,) arrays, or [1.0]
        For each penalty, 1 for its weights, and 0 for other weights in the span; 1.0 if there is
        only one penalty.
    """

    lambdas: Vector
    spans: list[slice]
    members: list[Vector | float]

    @classmethod
    def of(cls, reg_lambda: float | Vector, n_weights: int) -> _Groups:
        """From one penalty for all weights, or one for each."""
        if np.ndim(reg_lambda) == 0:
            return cls(np.array([reg_lambda], np.float64), [slice(0, n_weights)], [1.0])
        groups = cls(np.unique(reg_lambda), [], [])
        for penalty in groups.lambdas:
            members = reg_lambda == penalty
            places = np.flatnonzero(members)
            groups.spans.append(slice(places[0], places[-1] + 1))
            groups.members.append(members[groups.spans[-1]].astype(np.float64))
        return groups

    def products(self, rows: Vector, vector: Vector) -> Vector:
        """Products of rows (m, W) with a vector, (G, m)."""
        return np.array(
            [
                np.einsum("ij,j->i", rows[:, span], members * vector[span])
                for span, members in zip(self.spans, self.members, strict=True)
            ]
        )


class _Planes:
    """The m planes a_i w + b_i, at most `MEMORY`, and their products with a centre.

    Attributes
    ----------
    groups : _Groups
        G groups of weights with the same penalty.
    slopes : (m, W), offsets : (m,)
        a and b.
    gram : (G, m, m)
        Products of the slopes.
    ages : (m,)
        Number of planes that were added after each.
    bound_shares, step_shares : (m,)
        Shares of the planes in the bound and in the last step.
    centre : (W,)
        The best weights so far.
    squares, at_centre : (G,) and (G, m)
        Products of the centre with itself and with the slopes.
    """

    def __init__(self, centre: Vector, groups: _Groups) -> None:
        self.groups = groups
        self._slopes = np.empty((MEMORY, len(centre)))
        self.ages: Vector = np.empty(0)
        self.offsets: Vector = np.empty(0)
        self.gram: Vector = np.empty((len(groups.lambdas), 0, 0))
        self.bound_shares: Vector = np.empty(0)
        self.step_shares: Vector = np.empty(0)
        self.move_centre(centre)

    def pack(self) -> dict[str, Vector]:
        """All planes as arrays."""
        arrays = {name: getattr(self, name) for name in ("slopes", "centre", *BY_GROUP, *BY_PLANE)}
        return {f"bundle.{name}": array for name, array in arrays.items()}

    @classmethod
    def unpack(cls, state: State, n_weights: int, groups: _Groups) -> _Planes:
        """Read the output of `pack`; raises ModelFileError."""
        planes = cls(read_weights(state, "bundle.centre", (n_weights,)), groups)
        n_planes = len(read_array(state, "bundle.offsets", np.float64))
        require(0 < n_planes <= MEMORY, "its number of planes is out of range")
        for name in BY_PLANE:
            setattr(planes, name, read_weights(state, f"bundle.{name}", (n_planes,)))
        for shares in (planes.bound_shares, planes.step_shares):
            sums_to_one = shares.min() >= 0 and abs(shares.sum() - 1) < 1e-6
            require(sums_to_one, "the shares of its planes do not add up to 1")
        planes.slopes[:] = read_weights(state, "bundle.slopes", (n_planes, n_weights))
        for name, shape in zip(BY_GROUP, ((), (n_planes,), (n_planes, n_planes)), strict=True):
            array = read_weights(state, f"bundle.{name}", (len(groups.lambdas), *shape))
            setattr(planes, name, array)
        require(planes._fit_together(), "its planes do not fit together")
        return planes

    def _fit_together(self) -> bool:
        """Whether all products match the slopes and the centre, except for rounding."""
        products = self.groups.products
        with np.errstate(over="ignore", invalid="ignore"):
            # A plane may be a mixture of longer ones: rounding errors are relative to the longest.
            longest = np.sqrt(np.einsum("ij,ij->i", self.slopes, self.slopes).max())
            far = np.sqrt(dot(self.centre, self.centre))
            gram = np.stack([products(self.slopes, slope) for slope in self.slopes], axis=1)
            close = [
                np.abs(self.gram - gram) <= 1e-6 * longest**2,
                np.abs(self.at_centre - products(self.slopes, self.centre)) <= 1e-6 * longest * far,
                np.abs(self.squares - products(self.centre[None], self.centre)[:, 0])
                <= 1e-6 * far**2,
            ]
        return bool(np.isfinite(longest * far)) and all(part.all() for part in close)

    @property
    def slopes(self) -> Vector:
        return self._slopes[: len(self.offsets)]

    def move_centre(self, point: Vector) -> None:
        """Use another centre."""
        self.centre = point
        self.squares = self.groups.products(point[None], point)[:, 0]
        self.at_centre = self.groups.products(self.slopes, point)

    def add(self, slope: Vector, offset: float) -> None:
        """Add a plane, replacing another one if there are too many."""
        slot = len(self.offsets)
        if slot < MEMORY:
            self._grow()
        else:
            slot = self._make_room()
        self.ages += 1
        self.ages[slot] = 0
        self._slopes[slot] = slope
        self.offsets[slot] = offset
        products = self.groups.products(self.slopes, slope)
        self.gram[:, slot] = self.gram[:, :, slot] = products
        self.at_centre[:, slot] = self.groups.products(slope[None], self.centre)[:, 0]

    def _grow(self) -> None:
        """Make space for one more plane; the first gets all shares."""
        share = 1.0 if not len(self.offsets) else 0.0
        self.bound_shares = np.append(self.bound_shares, share)
        self.step_shares = np.append(self.step_shares, share)
        self.ages = np.append(self.ages, 0)
        self.offsets = np.append(self.offsets, 0.0)
        self.at_centre = np.pad(self.at_centre, ((0, 0), (0, 1)))
        self.gram = np.pad(self.gram, ((0, 0), (0, 1), (0, 1)))

    def _make_room(self) -> int:
        """Drop the least important plane, and return its slot.

        The second least important plane takes its shares. If the dropped plane had a share in the
        last step, it is mixed into the other in the ratio of their shares, so that the model does
        not become lower at the point that the step led to.
        """
        slot, heir = np.lexsort((-self.ages, self.bound_shares, self.step_shares))[:2]
        if self.step_shares[slot] > 0:
            lost, kept = self.step_shares[[slot, heir]] / self.step_shares[[slot, heir]].sum()
            self._slopes[heir] *= kept
            self._slopes[heir] += lost * self._slopes[slot]
            columns, rows = self.gram, self.gram.transpose(0, 2, 1)
            for numbers in (rows, columns, self.at_centre, self.offsets[None]):
                numbers[:, heir] = kept * numbers[:, heir] + lost * numbers[:, slot]
        for shares in (self.bound_shares, self.step_shares):
            shares[heir] += shares[slot]
            shares[slot] = 0.0
        return int(slot)


def _minimize_on_simplex(hessian: Vector, linear: Vector, start: Vector, tol: float) -> Vector:
    """Minimise ``s H s / 2 - linear s`` over shares s that are not negative and sum to 1.

    An active-set method: the nonzero shares move towards their minimum until they are there or one
    of them is zero; in that case the others go on without it. At the minimum, the share with the
    lowest slope is added. Ends within `tol` of the minimum, or at the limit of rounding. The value
    never increases.
    """
    shares = start.copy()
    used = shares > 0
    for _ in range(10 * len(shares)):
        slopes = np.einsum("ij,j->i", hessian, shares) - linear
        lowest = int(slopes.argmin())
        if dot(shares, slopes) - slopes[lowest] <= tol:
            break
        used[lowest] = True
        before = shares.copy()
        while _move_used(hessian, linear, shares, used):
            pass
        if (shares == before).all():
            break
    shares /= shares.sum()
    return shares


def _move_used(hessian: Vector, linear: Vector, shares: Vector, used: NDArray[np.bool_]) -> bool:
    """Move the shares in use towards their minimum.

    True if one reaches zero first, which ends the move.
    """
    places = np.flatnonzero(used)
    slopes = (np.einsum("ij,j->i", hessian, shares) - linear)[places]
    n_used = len(places)
    # Newton's step subject to a zero sum. Planes may be identical: a little damping makes the step
    # unique, and does not change the limit.
    system = np.ones((n_used + 1, n_used + 1))
    system[:-1, :-1] = hessian[np.ix_(places, places)]
    damping = 1e-12 * (np.trace(hessian) / len(shares) + np.ptp(slopes))
    system[np.arange(n_used), np.arange(n_used)] += damping
    system[-1, -1] = 0.0
    step = np.linalg.solve(system, np.append(-slopes, 0.0))[:-1]
    falling = np.flatnonzero(step < 0)
    reach = shares[places[falling]] / -step[falling]
    if not len(falling) or reach.min() >= 1:
        shares[places] = (shares[places] + step).clip(min=0)
        return False
    first = int(reach.argmin())
    shares[places] = (shares[places] + reach[first] * step).clip(min=0)
    shares[places[falling[first]]] = 0.0
    used[places[falling[first]]] = False
    return True
