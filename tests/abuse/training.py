"""Training: what a case says, made into an estimator and data."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from abuse.kind import Case
from hedgerow import Checkpoint, LinearCRF, TreeCRF
from hedgerow.relational import At, RelationalFeatures
from reference.parents import random_parents

__all__ = [
    "FLAT_FORMS",
    "LABELS",
    "N_SHORT",
    "SCHEMES",
    "Part",
    "Training",
    "has_directions",
    "mark_of",
]

LABELS = {
    "text": ["a", "b", "cc", "é"],
    "numbers": [-1, 0, 2, 10],
    "BIO": ["O", "B-x", "I-x", "B-y", "I-y"],
    "IOB1": ["O", "I-x", "B-x", "I-y", "B-y"],
    "BILOU": ["O", "B-x", "I-x", "L-x", "U-x"],
    "BIOES": ["O", "B-x", "I-x", "E-x", "S-x"],
}
MARKS = {"text": "?", "numbers": -9}  # marks of a missing label in y; otherwise None
SCHEMES = ["BIO", "IOB1", "BILOU", "BIOES"]
FLAT_FORMS = ["flat", "grouped"]  # by `groups`, and by a column of the table
COLUMNS = ["flag", "count", "number"]  # those of numbers, in every form
QUERIES = ["flag=1", "count=1", "count=2"]  # facts that represent them
# Queries compare texts and linked positions with variables; numbers are constants.
FACT_MODES = ["text(+t,-s)", "text(+t,+s)", "flag(+t,#f)", "count(+t,#c)"]
LINK_MODES = ["link(+t,-t)", "link(-t,+t)"]
N_SHORT = 2  # rounds or iterations of an initial model


class Part(NamedTuple):
    """One sequence of a training; its weight is a number, an array of its rows, or None.

    Its parents are None in a chain.
    """

    x: Any
    y: Any
    labels: list[Any]
    weight: Any
    parents: Any = None


@dataclass(frozen=True)
class Training:
    """What a case says, made into an estimator and data.

    Attributes
    ----------
    X, y
        In the format of the case: lists of sequences, or flat.
    fit_parameters
        Further arguments of `fit`.
    ask_parameters
        Further arguments of other methods: groups of a flat X, and parents.
    labels
        All labels of each sequence, including those that are missing in y.
    parents
        Parents of the positions of each sequence; None in chains.
    watched
        The eval set, in the same format.
    """

    case: Case
    X: Any
    y: Any
    fit_parameters: dict[str, Any]
    ask_parameters: dict[str, Any]
    labels: list[list[Any]]
    watched: "Training | None" = None
    parents: list[Any] | None = None

    @classmethod
    def of(cls, case: Case, *, renewed: bool = False) -> "Training":
        """Make the data; the same case gives the same data, or new ones with the same y."""
        data = case["data"]
        rng = np.random.default_rng(data["seed"])
        codes = draw_labels(rng, data)
        columns = [draw_columns(rng, part, data) for part in codes]
        classes = np.array(LABELS[data["labels"]], dtype=object)
        labels = [classes[part] for part in codes]
        y = hide(rng, labels, data["unknown"], mark_of(data), keep_first="held_out" in case)
        weights = draw_weights(rng, case)
        if renewed:
            rng = np.random.default_rng([data["seed"], 1])
            columns = [draw_columns(rng, part, data) for part in codes]
        form = "frames" if data["form"] in FLAT_FORMS else data["form"]
        xs = [shape(part, form) for part in columns]
        if form == "facts" and data["facts"]["links"]:
            xs = list(map(add_links, xs))
        all_labels = [part.tolist() for part in labels]
        watched = cls.of(case, renewed=True) if case.get("watched") and not renewed else None
        parents = draw_parents(data)
        return cls.join(case, list(map(Part, xs, y, all_labels, weights, parents)), watched)

    @classmethod
    def join(cls, case: Case, parts: list[Part], watched: "Training | None") -> "Training":
        """Sequences in the format of the case."""
        xs, ys = [part.x for part in parts], [np.asarray(part.y, dtype=object) for part in parts]
        labels = [part.labels for part in parts]
        fit_parameters: dict[str, Any] = {}
        if watched is not None:
            fit_parameters["eval_set"] = watched.as_eval_set()
        if parts[0].weight is not None:
            weights = [np.atleast_1d(part.weight) for part in parts]
            fit_parameters["sample_weight"] = np.concatenate(weights)
        parents = None if parts[0].parents is None else [part.parents for part in parts]
        asked: dict[str, Any] = {}
        X, y = xs, ys
        if case["data"]["form"] in FLAT_FORMS:
            X, y = pd.concat(xs, ignore_index=True), np.concatenate(ys)
            groups = np.repeat(np.arange(len(ys)), list(map(len, ys)))
            if case["data"]["form"] == "grouped":
                X = X.assign(group=groups)
            else:
                asked["groups"] = groups
        if parents is not None:
            is_flat = case["data"]["form"] in FLAT_FORMS
            asked["parents"] = np.concatenate(parents) if is_flat else parents
        fit_parameters |= asked
        return cls(case, X, y, fit_parameters, asked, labels, watched, parents)

    def build(self, **changes: Any) -> LinearCRF | TreeCRF:
        """The estimator, not fitted, with some parameters changed."""
        estimator = {"LinearCRF": LinearCRF, "TreeCRF": TreeCRF}[self.case["estimator"]]
        named = self.label_parameters() | self.column_parameters() | self.base_parameters()
        return estimator(**self.case["parameters"] | named | self.fact_parameters() | changes)

    def fit(self, checkpoint: Checkpoint | None = None, **changes: Any) -> LinearCRF | TreeCRF:
        """The fitted estimator, with a warm start from a short training run if the case has one."""
        parameters = self.start(**changes)
        return self.build(**changes).fit(self.X, self.y, checkpoint=checkpoint, **parameters)

    def start(self, **changes: Any) -> dict[str, Any]:
        """Further arguments of `fit`, with the model of a short training run if there is one."""
        if not self.case.get("warm"):
            return self.fit_parameters
        short = "max_iter" if self.case["estimator"] == "LinearCRF" else "n_rounds"
        init = self.build(**changes | {short: N_SHORT}).fit(self.X, self.y, **self.fit_parameters)
        return self.fit_parameters | {"init": init}

    def as_eval_set(self) -> dict[str, Any]:
        """Another training set as an `eval_set`."""
        more = {name: self.ask_parameters.get(name) for name in ("groups", "parents")}
        return {"X": self.X, "y": self.y, **more}

    def sequences(self) -> list[tuple[Any, Any]]:
        """X and y, sequence by sequence."""
        if self.case["data"]["form"] not in FLAT_FORMS:
            return list(zip(self.X, self.y, strict=True))
        places = np.split(np.arange(len(self.y)), np.cumsum(self.case["data"]["lengths"])[:-1])
        return [(self.X.iloc[place], self.y[place]) for place in places]

    def parts(self) -> list[Part]:
        """The data, sequence by sequence, without a column of groups."""
        lengths = self.case["data"]["lengths"]
        weights = self.fit_parameters.get("sample_weight")
        if weights is None:
            weights = [None] * len(lengths)
        elif self.case["weights"] == "positions":
            weights = np.split(weights, np.cumsum(lengths)[:-1])
        parents = self.parents or [None] * len(lengths)
        parts = zip(self.sequences(), self.labels, weights, parents, strict=True)
        grouped = self.case["data"]["form"] == "grouped"
        return [
            Part(x.drop(columns="group") if grouped else x, y, labels, weight, own)
            for (x, y), labels, weight, own in parts
        ]

    def having(self, parts: list[Part], watched: "Training | None" = None) -> "Training":
        """The same training run on other sequences, with another eval set if there is one."""
        lengths = [len(part.y) for part in parts]
        case = self.case | {"data": self.case["data"] | {"lengths": lengths}}
        return self.join(case, parts, watched or self.watched)

    def changed(self, change: Callable[[Part], Part]) -> "Training":
        """The same training run with every sequence changed, including the eval set."""
        watched = self.watched and self.watched.changed(change)
        return self.having(list(map(change, self.parts())), watched)

    def label_parameters(self) -> dict[str, Any]:
        """Parameters that name labels; all labels satisfy the constraints."""
        found: dict[str, Any] = {}
        if self.case["data"]["form"] == "grouped":
            found["group_column"] = "group"
        if mark_of(self.case["data"]) is not None:
            found["missing_label"] = mark_of(self.case["data"])
        labels = sorted({label for y in self.labels for label in y})
        if self.case.get("class_weights"):
            weights = zip(labels, self.case["class_weights"], strict=False)
            found["class_weight"] = dict(weights)
        if self.case.get("costs"):
            costs = cycle(self.case["costs"])
            found["label_costs"] = {
                true: {label: next(costs) for label in labels if label != true} for true in labels
            }
        if self.case.get("patterns") is not None:
            found["label_patterns"] = [
                tuple(labels[code % len(labels)] for code in pattern)
                for pattern in self.case["patterns"]
            ]
        pairs, starts, ends = self._seen()
        if self.case["constrained"] == "scheme":
            found["constraints"] = self.case["data"]["labels"]
        elif self.case["constrained"] == "allowed":
            found |= {"allowed": pairs or None, "end_labels": ends}
        elif self.case["constrained"]:
            unseen = [(a, b) for a in labels for b in labels if (a, b) not in pairs]
            found |= {"forbidden": unseen[: len(labels)], "start_labels": starts}
        return found

    def _seen(self) -> tuple[list[Any], list[Any], list[Any]]:
        """Pairs of neighbouring labels, labels that begin sequences, and labels that end them."""
        pairs, starts, ends = set(), set(), set()
        for s, y in enumerate(self.labels):
            parents = range(-1, len(y) - 1) if self.parents is None else self.parents[s]
            pairs |= {(y[p], label) for p, label in zip(parents, y, strict=True) if p >= 0}
            starts |= {label for p, label in zip(parents, y, strict=True) if p < 0}
            ends |= {label for t, label in enumerate(y) if t not in set(parents)}
        return sorted(pairs), sorted(starts), sorted(ends)

    def base_parameters(self) -> dict[str, Any]:
        """A base model, if the case has one, and its number of folds."""
        if not self.case.get("base"):
            return {}
        name, *parts = self.case["base"].split()
        if name == "trees":
            base: LinearCRF | TreeCRF = TreeCRF(n_rounds=2, max_depth=2, min_child_weight=0.0)
        else:
            base = LinearCRF(max_iter=3, tol=0, transition_attributes=name == "pairs")
        return {"base": base, "base_folds": 2 if parts else 0}

    def fact_parameters(self) -> dict[str, Any]:
        """The definition of queries, if X contains facts."""
        if self.case["data"]["form"] != "facts":
            return {}
        facts = self.case["data"]["facts"]
        modes = FACT_MODES + LINK_MODES * facts["links"]
        return {"queries": RelationalFeatures(modes, depth=facts["depth"], window=facts["window"])}

    def column_parameters(self) -> dict[str, Any]:
        """Parameters that name columns of numbers: by number if they have no names."""
        form = self.case["data"]["form"]
        names = {"dense": [0, 1, 2], "sparse": [0, 1, 2], "facts": QUERIES}.get(form, COLUMNS)
        labels = sorted({label for y in self.labels for label in y}, reverse=True)
        found: dict[str, Any] = {}
        if form in ("items", "facts") and "held_out" in self.case:  # of some sequences alone
            known = set()
        elif form == "items":  # with few positions, some attributes may not occur
            known = {name for x in self.X for item in x for name in item if item[name]}
        elif form == "facts":
            known = set(self.fact_parameters()["queries"].fit(self.X).get_feature_names_out())
        else:
            known = set(names)
        if self.case.get("monotone") and len(labels) > 1:
            found["monotone_constraints"] = {
                names[column]: dict(zip(labels, directions, strict=False))
                for column, directions in self.case["monotone"]
                if names[column] in known
            }
        if self.case.get("interactions"):
            groups = [
                [names[column] for column in group if names[column] in known]
                for group in self.case["interactions"]
            ]
            found["interaction_constraints"] = [group for group in groups if group] or None
        return found


def draw_parents(data: Case) -> list[Any]:
    """Parents of the positions of each sequence, None in chains."""
    if not data.get("graph"):
        return [None] * len(data["lengths"])
    rng = np.random.default_rng([data["seed"], 2])
    return [random_parents(rng, length) for length in data["lengths"]]


def draw_labels(rng: np.random.Generator, data: Case) -> list[np.ndarray]:
    """Codes of the labels of each sequence, chunks if they are of a scheme."""
    if data["labels"] in SCHEMES:
        return [draw_chunks(rng, length, data) for length in data["lengths"]]
    return [draw_codes(rng, length, data["n_labels"]) for length in data["lengths"]]


def draw_chunks(rng: np.random.Generator, length: int, data: Case) -> np.ndarray:
    """Codes (length,) of chunks of up to three labels, and of positions outside of chunks."""
    names, scheme, labels = LABELS[data["labels"]], data["labels"], []
    types = ["x", "y"] if data["n_labels"] > 2 and "B-y" in names else ["x"]
    while len(labels) < length:
        kind = rng.choice(["", *types])
        n = min(int(rng.integers(1, 4)), length - len(labels))
        if not kind:
            labels.append("O")
        elif scheme == "BIO":
            labels += [f"B-{kind}", *[f"I-{kind}"] * (n - 1)]
        elif scheme == "IOB1":
            follows = bool(labels) and labels[-1].endswith(f"-{kind}")
            labels += [f"{'B' if follows else 'I'}-{kind}", *[f"I-{kind}"] * (n - 1)]
        else:
            single, last = ("U", "L") if scheme == "BILOU" else ("S", "E")
            chunk = [single] if n == 1 else ["B", *["I"] * (n - 2), last]
            labels += [f"{letter}-{kind}" for letter in chunk]
    return np.array([names.index(label) for label in labels])


def draw_codes(rng: np.random.Generator, length: int, n_labels: int) -> np.ndarray:
    """Codes (length,) of labels that tend to be followed by the next one."""
    codes = rng.integers(0, n_labels, length)
    for t in range(1, length):
        if rng.random() < 0.5:
            codes[t] = (codes[t - 1] + 1) % n_labels
    return codes


def draw_weights(rng: np.random.Generator, case: Case) -> list[Any]:
    """Weights of sequences, or of the positions of each."""
    lengths = case["data"]["lengths"]
    if case["weights"] == "none":
        return [None] * len(lengths)
    by_position = case["weights"] == "positions"
    weights = rng.integers(0, 4, sum(lengths) if by_position else len(lengths)) / 2.0
    weights[0] = 1.0
    if "held_out" in case:  # at least one is held out, and at least one is not
        weights[-1] = 1.0
    return np.split(weights, np.cumsum(lengths)[:-1]) if by_position else list(weights)


def draw_columns(rng: np.random.Generator, codes: np.ndarray, data: Case) -> dict[str, np.ndarray]:
    """Columns of one sequence: a flag, counts, numbers with NaN, and text."""
    n = len(codes)
    columns = {
        "flag": (rng.random(n) < 0.5).astype(float),
        "count": rng.integers(0, 4, n) * 1.0,
        "number": np.round(codes + rng.normal(size=n), 3) * data["scale"],
    }
    if data["gaps"]:
        columns["number"][rng.random(n) < 0.3] = np.nan
    columns["text"] = np.array(["u", "v", "w:1"], dtype=object)[rng.integers(0, 3, n)]
    return columns


def has_directions(crf: TreeCRF) -> bool:
    """Whether rounds of boosting have directions and steps, not only trees."""
    return bool(crf.line_search) or crf.direction == "conjugate"


def mark_of(data: Case) -> Any:
    """The mark of a missing label in y."""
    return MARKS.get(data["labels"]) if data.get("marked") else None


def hide(
    rng: np.random.Generator, labels: list[np.ndarray], share: float, mark: Any, *, keep_first: bool
) -> list[np.ndarray]:
    """Remove some labels, except the first occurrence of each, so that y still contains all of
    them.

    The first label of a sequence is kept too if required.
    """
    if not share:
        return labels
    seen: set[Any] = set()
    hidden = []
    for part in labels:
        new = [not (label in seen or seen.add(label)) for label in part]
        new[0] |= keep_first
        hidden.append(np.where((rng.random(len(part)) < share) & ~np.array(new), mark, part))
    return hidden


def shape(columns: dict[str, np.ndarray], form: str) -> Any:
    """One sequence in the user's format."""
    numbers = np.column_stack([columns[name] for name in COLUMNS])
    if form == "dense":
        return numbers
    if form == "sparse":
        return sparse.csr_matrix(numbers)
    if form == "frames":
        return pd.DataFrame(columns)
    items = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if form == "facts":
        return [list(item.items()) for item in items]
    for item in items:
        if item["flag"] == 0.0:  # equivalent to not having it
            del item["flag"]
    return items


def add_links(x: list[Any]) -> list[Any]:
    """Facts with links: the count of a position is the number of another one."""
    return [[*atoms, ("link", At(int(dict(atoms)["count"]) % len(x)))] for atoms in x]
