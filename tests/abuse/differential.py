"""Differential tests: predictions of fitted models against a slow model from their public tables.

The oracle, `reference.fitted_model`, lists all labellings of each sequence, in log space.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from hypothesis import strategies as st
from sklearn.utils import check_random_state

from abuse.kind import Case, Kind
from abuse.training import FLAT_FORMS, N_SHORT, Training, has_directions, mark_of
from abuse.trainings import learn_from_all, trainings
from hedgerow import LinearCRF, TreeCRF
from reference.automata import Enumeration, PatternChain
from reference.fitted_model import Losses, cost_matrix, count_positions, read_model
from reference.linear import NaiveModel, strength_by_length
from reference.relational_databases import as_attributes

EPSILON = np.finfo(np.float64).eps
SINGLE_EPSILON = np.finfo(np.float32).eps


@lru_cache(32)
def train(case: str) -> tuple[Training, LinearCRF | TreeCRF, NaiveModel]:
    """Train the case (JSON); returns the training, the model and its oracle, cached for all
    kinds."""
    training = Training.of(json.loads(case))
    crf = training.fit()
    X = [x for x, _ in training.sequences()]
    return training, crf, read_model(crf, as_attributes(crf, X))


@dataclass(frozen=True)
class Question:
    """A fitted model, its slow counterpart, and the data to predict with both.

    Attributes
    ----------
    asked
        The training data, or new data.
    known
        Known labels of each sequence, None where they are not known; or None.
    """

    training: Training
    crf: LinearCRF | TreeCRF
    model: NaiveModel
    asked: Training
    known: list[list[Any]] | None

    @classmethod
    def of(cls, case: Case) -> "Question":
        """Train, and draw known labels from the possible labellings."""
        training, crf, model = train(json.dumps(case["training"]))
        asked = Training.of(case["training"], renewed=case["fresh"])
        question = cls(training, crf, model, asked, None)
        if not case["known"]:
            return question
        rng = np.random.default_rng(case["training"]["data"]["seed"])
        known = []
        for exact in question.exact:
            _, codes = exact.best[rng.integers(len(exact.best))]
            told = rng.random(len(codes)) < case["known"]
            known.append(
                [model.classes[k] if flag else None for k, flag in zip(codes, told, strict=True)]
            )
        return cls(training, crf, model, asked, known)

    @cached_property
    def xs(self) -> list[Any]:
        """Each sequence in the format of the slow model, where facts are attributes."""
        return as_attributes(self.crf, [x for x, _ in self.asked.sequences()])

    @cached_property
    def exact(self) -> list[Enumeration]:
        """All labellings of each sequence."""
        known = self.known or [None] * len(self.xs)
        return list(map(self.model.enumerate, self.xs, known))

    @cached_property
    def slack(self) -> float:
        """How much a log probability may differ.

        Every addition rounds by at most half of EPSILON times the magnitude of all terms; a score
        and log Z take fewer than 128 of them. The oracle sums one probability per labelling. Scores
        of trees that split on labels are stored in single precision, and rounded in every round.
        """
        n_labellings = max(len(exact.probs) for exact in self.exact)
        magnitude = max(map(self.model.magnitude, self.xs))
        slack = EPSILON * (n_labellings + 64 * magnitude)
        if isinstance(self.crf, TreeCRF) and self.crf.transitions == "trees":
            slack += SINGLE_EPSILON * (self.crf.n_rounds_ + 1) * magnitude
        return float(slack)

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments of a method in addition to X."""
        if self.known is None:
            return self.asked.ask_parameters
        return self.asked.ask_parameters | {"known": self.join(self.known)}

    def join(self, labels: list[list[Any]]) -> Any:
        """Labels in the format of y."""
        if self.asked.case["data"]["form"] not in FLAT_FORMS:
            return labels
        return np.array([label for part in labels for label in part], dtype=object)

    def split(self, answer: Any, axis: int = 0) -> list[np.ndarray]:
        """Split a prediction by sequence, for any format of X; one axis is that of positions."""
        if isinstance(answer, list):
            return answer
        ends = np.cumsum([count_positions(x) for x in self.xs])
        return np.split(answer, ends[:-1], axis=axis)

    def codes(self, labels: Any) -> tuple[int, ...]:
        """Codes of the labels of a sequence, which must have the type of the training labels."""
        return self.model.codes(np.asarray(labels).tolist())


@st.composite
def questions(draw: st.DrawFn) -> Case:
    """Training runs, and the data to predict."""
    return {
        "training": learn_from_all(draw(trainings())),  # the oracle knows only those rows
        "fresh": draw(st.booleans()),
        "known": draw(st.sampled_from([0.0, 0.0, 0.3, 1.0])),
    }


def check_likelihood(case: Case) -> None:
    """`log_likelihood` of labels, some of which are missing or violate the constraints."""
    question = Question.of(case | {"known": 0.0})
    rng = np.random.default_rng(case["training"]["data"]["seed"])
    classes = [*question.model.classes, *[None] * round(4 * case["known"])]
    drawn = [
        [classes[k] for k in rng.integers(0, len(classes), len(y))] for y in asked_ys(question)
    ]
    for ys in (drawn, asked_ys(question)):
        found = question.crf.log_likelihood(
            question.asked.X, question.join(ys), **question.asked.ask_parameters
        )
        expected = list(map(question.model.log_likelihood, question.xs, ys))
        np.testing.assert_allclose(found, expected, rtol=0, atol=question.slack)


def asked_ys(question: Question) -> list[list[Any]]:
    """The labels of the data, None where they are not known."""
    mark = mark_of(question.asked.case["data"])
    return [
        [None if label is None or label == mark else label for label in y]
        for _, y in question.asked.sequences()
    ]


def check_loss(case: Case) -> None:
    """`loss_`, the history and `score`, against the definitions of the objectives."""
    question = Question.of(case | {"known": 0.0, "fresh": False})
    crf, model = question.crf, question.model
    losses = losses_of(question, weighted=True)
    slack = question.slack * max(1.0, np.sum([w.sum() for w in losses.weights]))
    if isinstance(crf, LinearCRF):
        ys = asked_ys(question)
        strength_of = strength_by_length(crf.pattern_lambda, ys, losses.weights)
        penalty = model.penalty(crf.reg_lambda, crf.reg_alpha, strength_of)
        expected = losses.of(crf.objective, crf.sharpness) + penalty
        slack += EPSILON * 64 * penalty
        np.testing.assert_allclose(crf.loss_, expected, rtol=1e-13, atol=slack)
        if crf.objective in (
            "likelihood",
            "softmax_margin",
        ):  # other training runs have stages, the last of which may be empty
            n_kept = count_kept(crf)
            assert crf.history_["loss"][max(0, n_kept - 1) : n_kept] in ([], [crf.loss_])
    else:
        check_boosting_loss(question, losses, slack)
    if "eval_set" in question.training.fit_parameters:
        check_evaluation(question)
    check_score(question)


def check_boosting_loss(question: Question, losses: Losses, slack: float) -> None:
    """The loss of the last round's objective, divided by the total weight of the known labels."""
    crf = question.crf
    assert isinstance(crf, TreeCRF)
    total = sum(
        weight
        for codes, weights in zip(losses.codes, losses.weights, strict=True)
        for code, weight in zip(codes, weights, strict=True)
        if code >= 0
    )
    # Without `init`, the first fifth of the rounds (for F1 four fifths) is for the likelihood. All
    # others are in the first and smoothest stage of the accuracy, since there are fewer rounds than
    # a stage has. A model with no more rounds than that was stopped early there, or found nothing
    # to learn afterwards.
    n_begun = N_SHORT if question.training.case["warm"] else crf.n_rounds
    n_warm = (4 if crf.objective == "f1" else 1) * n_begun // 5
    if crf.warm_rounds is not None:
        n_warm = crf.warm_rounds
    if crf.objective == "softmax_margin":
        n_warm = 0
    objectives = [crf.objective]
    if n_warm and crf.n_rounds_ <= n_warm:
        objectives.append("likelihood")
    scale = 1 / total if total else 0.0
    expected = [losses.of(objective, crf.sharpness / 8) * scale for objective in objectives]
    close = [np.isclose(crf.loss_, one, rtol=1e-13, atol=slack) for one in expected]
    assert any(close), f"loss_ is {crf.loss_}, not {expected} of {objectives}"
    if crf.n_rounds_:
        noted = crf.history_["loss"][crf.n_rounds_ - 1]  # the objective of the round
        # With directions, the trees of an initial model are added in another order.
        same = np.isclose(noted, crf.loss_, rtol=0, atol=slack * has_directions(crf))
        assert same or crf.n_rounds_ <= n_warm
        if crf.decode == "viterbi":  # the decoder of the accuracy is then Viterbi, not marginals
            return
        least, most = losses.count_right(question.slack)
        n_known = sum(code >= 0 for codes in losses.codes for code in codes)
        assert least <= crf.history_["accuracy"][crf.n_rounds_ - 1] * n_known + 1e-9
        assert crf.history_["accuracy"][crf.n_rounds_ - 1] * n_known - 1e-9 <= most


def count_kept(crf: LinearCRF | TreeCRF) -> int:
    """Number of rounds or iterations of the model."""
    if isinstance(crf, TreeCRF):
        return crf.n_rounds_
    is_best = crf.early_stopping_rounds is not None and crf.best_iter_ is not None
    return crf.best_iter_ if is_best else crf.n_iter_


def check_evaluation(question: Question) -> None:
    """The metrics of the kept model on the `eval_set`."""
    question = replace(question, asked=Training.of(question.training.case, renewed=True))
    crf = question.crf
    place = count_kept(crf) - 1
    if place < 0 or crf.objective == "max_margin":  # it keeps the best iteration
        return
    losses = losses_of(question, weighted=False)
    n_known = sum(code >= 0 for codes in losses.codes for code in codes)
    expected = losses.of(crf.objective, crf.sharpness) / n_known
    found = crf.history_["eval_loss"][place]
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=question.slack)
    decode = "marginal" if crf.decode == "auto" else crf.decode
    asked = question.asked
    accuracy = crf.score(asked.X, asked.y, decode=decode, **asked.ask_parameters)
    np.testing.assert_allclose(crf.history_["eval_accuracy"][place], accuracy, rtol=1e-13)


def check_score(question: Question) -> None:
    """The weighted share of labels that `predict` gets right."""
    training, crf = question.training, question.crf
    losses = losses_of(question, weighted=True, by_class=False)
    predicted = question.split(crf.predict(training.X, **training.ask_parameters))
    right = total = 0.0
    for labels, codes, weights in zip(predicted, losses.codes, losses.weights, strict=True):
        for code, truth, weight in zip(question.codes(labels), codes, weights, strict=True):
            right += weight * (code == truth)
            total += weight * (truth >= 0)
    weights = {k: v for k, v in training.fit_parameters.items() if k == "sample_weight"}
    found = crf.score(training.X, training.y, **training.ask_parameters, **weights)
    np.testing.assert_allclose(found, right / total, rtol=1e-13)


def losses_of(question: Question, *, weighted: bool, by_class: bool = True) -> Losses:
    """Labels, each with its weight: that of its sequence or row, times that of its class."""
    ys = asked_ys(question)
    lengths = list(map(len, ys))
    of_sequences, of_rows = np.ones(len(ys)), np.ones(sum(lengths))
    given = question.training.fit_parameters.get("sample_weight")
    if weighted and given is not None:
        if question.training.case["weights"] == "sequences":
            of_sequences = given
            of_rows = np.repeat(given, lengths)
        else:
            of_rows = given
            # Weights that differ only between sequences are weights of sequences.
            firsts = given[np.cumsum([0, *lengths[:-1]])]
            if (np.repeat(firsts, lengths) == given).all():
                of_sequences = firsts
    by_label = question.crf.class_weight
    if weighted and by_class and by_label is not None:
        labels = [label for y in ys for label in y]
        if by_label == "balanced":
            counts = {label: labels.count(label) for label in labels}
            by_label = {k: len(labels) / (len(counts) * n) for k, n in counts.items()}
        of_rows = of_rows * [by_label.get(label, 1.0) for label in labels]
    weights = np.split(of_rows, np.cumsum(lengths)[:-1])
    costs = cost_matrix(question.crf.label_costs, question.model.classes)
    average = question.crf.f1_average
    return Losses(question.model, question.xs, ys, weights, of_sequences.tolist(), costs, average)


def check_marginals(case: Case) -> None:
    """Probabilities of labels and of label patterns."""
    question = Question.of(case)
    crf, asked = question.crf, question.asked
    assert crf.label_patterns_ == [pattern for (pattern,) in question.model.pattern_weights]
    # The logarithm of a probability is off by the slack of both of its scores.
    found = question.split(crf.predict_marginals(asked.X, **question.parameters))
    patterns = question.split(crf.predict_pattern_marginals(asked.X, **question.parameters))
    for exact, of_labels, of_patterns in zip(question.exact, found, patterns, strict=True):
        np.testing.assert_allclose(of_labels, exact.marginals, rtol=0, atol=2 * question.slack)
        expected = exact.pattern_marginals
        np.testing.assert_allclose(of_patterns, expected, rtol=0, atol=2 * question.slack)
    probabilities = crf.predict_proba(asked.X, **question.parameters)
    np.testing.assert_array_equal(probabilities, np.concatenate(found))


def check_decoding(case: Case) -> None:
    """The best labelling by either measure, the k best, and random ones."""
    question = Question.of(case)
    crf, asked, parameters = question.crf, question.asked, question.parameters
    rows = {
        decode: question.split(crf.predict(asked.X, decode=decode, **parameters))
        for decode in ("viterbi", "marginal", None)
    }
    k = 1 + case["training"]["data"]["seed"] % 7
    best = crf.predict_k_best(asked.X, k, **parameters)
    for s, exact in enumerate(question.exact):
        allowed = exact.chain.labellings[exact.scores > -np.inf]
        viterbi, marginal, default = (question.codes(rows[decode][s]) for decode in rows)
        assert default == (viterbi if crf.decode_ == "viterbi" else marginal)
        assert exact.log_probs[viterbi] + exact.log_z >= exact.best[0][0] - question.slack
        sums = exact.marginals[np.arange(len(viterbi)), allowed].sum(axis=1)
        # Without constraints positions are decoded separately: the labelling may be impossible.
        own = exact.marginals[np.arange(len(marginal)), marginal]
        assert own.sum() >= sums.max() - 4 * len(own) * question.slack
        assert marginal in set(map(tuple, allowed.tolist()))
        check_best(question, exact, best[s], k)
    check_samples(question)


def check_best(
    question: Question, exact: Enumeration, found: list[tuple[Any, float]], k: int
) -> None:
    """Different labellings, as many as exist, each with the right probability for its rank."""
    assert len(found) == min(k, len(exact.best))
    codes = [question.codes(labels) for labels, _ in found]
    assert len(set(codes)) == len(codes)
    log_probs = np.array([log_prob for _, log_prob in found])
    assert (np.diff(log_probs) <= 0).all()
    of_ranks = [score - exact.log_z for score, _ in exact.best[:k]]
    of_labels = [exact.log_probs[labels] for labels in codes]
    np.testing.assert_allclose(log_probs, of_ranks, rtol=0, atol=2 * question.slack)
    np.testing.assert_allclose(log_probs, of_labels, rtol=0, atol=2 * question.slack)


def check_samples(question: Question) -> None:
    """Each label corresponds to a random number among the cumulated probabilities."""
    n_positions = sum(map(count_positions, question.xs))
    uniforms = check_random_state(5).random_sample((3, n_positions))
    drawn = question.crf.sample(question.asked.X, 3, random_state=5, **question.parameters)
    rows = question.split(drawn, axis=1)
    parts = question.split(uniforms, axis=1)
    for exact, labels, numbers in zip(question.exact, rows, parts, strict=True):
        codes = [question.codes(row) for row in labels]
        check_draws(exact.chain, exact.scores, codes, numbers, 2 * question.slack)


def check_draws(
    chain: PatternChain,
    scores: np.ndarray,
    drawn: Iterable[Sequence[int]],
    uniforms: np.ndarray,
    slack: float,
) -> None:
    """Each label is the first whose cumulated probability, given those before, exceeds a number.

    ``scores`` (K**T,) of all labellings, ``uniforms`` (n, T); probabilities may differ by `slack`.
    """
    for codes, numbers in zip(drawn, uniforms, strict=True):
        agree = np.ones(len(scores), dtype=bool)
        for t, (code, number) in enumerate(zip(codes, numbers, strict=True)):
            options = range(chain.nodes.shape[1])
            sums = [
                np.logaddexp.reduce(scores[agree & (chain.labellings[:, t] == k)], initial=-np.inf)
                for k in options
            ]
            assert sums[code] > -np.inf
            probs = np.exp(sums - np.max(sums))
            ends = np.concatenate([[0.0], np.cumsum(probs / probs.sum())])
            assert ends[code] - slack <= number <= ends[code + 1] + slack
            agree &= chain.labellings[:, t] == code


KINDS = [
    Kind("differential-likelihood", questions(), check_likelihood, in_suite=10),
    Kind("differential-loss", questions(), check_loss, in_suite=10),
    Kind("differential-marginals", questions(), check_marginals, in_suite=10),
    Kind("differential-decoding", questions(), check_decoding, in_suite=10),
]
