"""Small training runs that are stopped and resumed."""

import numpy as np

from hedgerow import LinearCRF, TreeCRF


def make_data(seed=0, n_sequences=24):
    """Sequences of three numbers per position, and three labels that depend on their neighbours."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(rng.integers(1, 8), 3)) for _ in range(n_sequences)]
    y = [((x[:, 0] + np.roll(x[:, 1], 1) > 0).astype(int) + (x[:, 2] > 1)).tolist() for x in X]
    return X, y


X, Y = make_data()
EVAL_SET = make_data(1, 8)
WEIGHTS = np.arange(1.0, 25.0)


class Brier:
    """A custom objective."""

    def value(self, marginals, labels, weights):
        return -0.5 * float((((marginals - np.eye(3)[labels]) ** 2).sum(axis=1) * weights).sum())

    def gradient(self, marginals, labels, weights):
        return (np.eye(3)[labels] - marginals) * weights[:, None]


def train_long(kind, checkpoint):
    """A training run of some seconds if every step is saved; `kind` is a class."""
    if kind == "TreeCRF":
        return TreeCRF(n_rounds=150, max_depth=2, n_jobs=1).fit(X, Y, checkpoint=checkpoint)
    crf = LinearCRF(reg_lambda=1e-6, tol=0, max_iter=150, n_jobs=1)
    return crf.fit(X, Y, checkpoint=checkpoint)


def saved(crf, folder):
    """The bytes of a model's file."""
    crf.save(folder / "model")
    return (folder / "model").read_bytes()


def stop_at(number, error=KeyboardInterrupt):
    """A callback that raises KeyboardInterrupt, or another error, after this many steps."""

    def callback(now):
        if now.number == number:
            raise error

    return callback
