"""Training of trees: from parameters and labelled sequences to a booster."""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from hedgerow import _core
from hedgerow.boosting.booster import Booster
from hedgerow.boosting.column_rules import read_column_rules
from hedgerow.boosting.context_training import train_trees
from hedgerow.boosting.query_growth import QueryGrowth
from hedgerow.boosting.rounds import Rounds
from hedgerow.boosting.running_scores import Binned, RunningScores, TreeScoring
from hedgerow.boosting.schedule import Schedule
from hedgerow.boosting.settings import Settings, TreeParameters, read_window
from hedgerow.boosting.transitions import PatternBound
from hedgerow.boosting.tree_training import TreeTraining
from hedgerow.comm import Comm
from hedgerow.counting import count_of
from hedgerow.fingerprint import fingerprint, fingerprint_sequences
from hedgerow.history import History
from hedgerow.model import Model
from hedgerow.objectives import Likelihood, TrainingObjective
from hedgerow.potentials import BaseModel, NodeTrees
from hedgerow.potentials.scoring import sum_arcs
from hedgerow.relational import RelationalFeatures
from hedgerow.relational.facts import Facts
from hedgerow.relational.queries_state import unpack_queries
from hedgerow.relational.refiner import Refiner
from hedgerow.sequences import Sequences
from hedgerow.state import State, expecting, require
from hedgerow.threads import count_threads
from hedgerow.training.labelled import Labelled
from hedgerow.training.state import TrainingState
from hedgerow.training.trainer import Trainer
from hedgerow.training.training_set import TrainingSet
from hedgerow.trees.columns import Columns
from hedgerow.trees.forest import Forest
from hedgerow.trees.missing import MissingMethod

__all__ = ["BoostingTrainer"]

# Maximum number of labels if trees split on previous labels, since labels are bins.
MAX_LABELS = 255
# With few positions, most of the time goes into searching the bins for the best split: with fewer
# bins, numeric columns take a third of the time.
FEW_BINS = 31


class TrainedTrees(Protocol):
    """The parts of a fitted `TreeCRF` that a warm start needs."""

    model_: Model
    history_: History
    n_warm_rounds_: int


class BoostingTrainer(Trainer[Binned, Booster]):
    """Makes a `Booster`; the trees, the labels and the bins of columns of ``init`` are kept."""

    def __init__(
        self, crf: TreeParameters, objective: TrainingObjective, init: TrainedTrees | None = None
    ) -> None:
        self.crf = crf
        self.objective = objective
        self.n_steps = int(crf.n_rounds)
        self.history = {}
        if init is not None:
            self.extends = init.model_
            self.trees = init.model_.potential(NodeTrees)
            self.n_before = self.trees.forest.n_rounds
            self.history = _cut_history(init.history_, self.n_before)
        self.n_warm_before = 0 if init is None else init.n_warm_rounds_
        shares_rounds = objective.needs_warm_start and crf.warm_rounds is None and init is None
        self.free = () if shares_rounds else ("n_rounds",)

    def learn(self, labelled: Labelled) -> TrainingSet:
        """Learn label patterns, and the bins of columns unless a model has them already."""
        self.refiner = self._find_refiner(labelled)
        if self.refiner is not None:  # it adds names of its own
            index = _core.StringIndex.from_arrays(*labelled.index.to_arrays())
            labelled = replace(labelled, index=index)
        self.sequences = labelled.sequences
        self.objective = self.objective.for_labels(labelled.labels)
        self.schedule = self._plan()
        asks_labels = self.crf.transitions == "trees"
        self.data = TrainingSet.learn(
            self.crf, labelled, objective=self.objective, has_edges=asks_labels
        )
        n_threads = count_threads(self.crf.n_jobs)
        if self.crf.subsample < 1 or self.crf.stratified or self.crf.sampling_method != "uniform":
            self.data = replace(self.data, identities=labelled.identify(n_threads))
        if self.extends is None:
            max_bins = int(self.crf.max_bins)
            self.columns = Columns.learn(
                labelled.sequences,
                labelled.index,
                max_bins,
                n_threads,
                self.crf.missing,
                labelled.comm,
                labelled.weights_of_positions(),
            )
        else:
            self.columns = self.trees.columns
            if self.columns.index is not None:
                self.columns = replace(self.columns, index=labelled.index)
            check_same_missing(self.crf.missing, self.columns.missing)
        if asks_labels and self.extends is None:
            self.columns = add_labels(self.columns, self.data)
        self.settings = self._read_settings()
        if self.columns.n_lags:
            self._check_memory()
        self.scoring = self._build_scoring()
        return self.data

    def _build_scoring(self) -> TreeScoring:
        """How trees will score sequences."""
        given, trellis = self.data.given, self.data.trellis
        return TreeScoring(
            self.columns,
            trellis,
            given,
            sum_arcs(given, trellis),
            self.settings.n_threads,
            have_directions=self.settings.have_directions,
            refiner=self.refiner,
        )

    def _find_refiner(self, labelled: Labelled) -> Refiner | None:
        """What extends queries that trees split on; None if there is nothing to extend."""
        crf, queries, facts = self.crf, labelled.queries, labelled.sequences.facts
        if queries is None or not isinstance(facts, Facts) or crf.max_literals <= queries.depth:
            return None
        if not any(query.shape.types for query in queries.listed()):
            return None
        check_refinable(crf)
        return Refiner(queries, facts, int(crf.max_literals))

    def learnt_from(self, comm: Comm) -> str:
        """A digest of X."""
        found, sparse = self.sequences, self.sequences.sparse
        columns = [found.dense, found.parents, *(column.codes for column in found.categorical)]
        arrays = [column for column in columns if column is not None]
        entries = None
        if sparse is not None:
            values = () if sparse.values is None else (sparse.values,)
            entries = sparse.indptr, (sparse.indices, *values)
        names = [column.categories for column in found.categorical]
        digest = fingerprint_sequences(found.offsets, arrays, entries, comm)
        return fingerprint(found.schema, names, found.facts, digest)

    def prepare(self, sequences: Sequences) -> Binned:
        """Sequences as bins."""
        return self.scoring.bin(sequences)

    def begin(self) -> Booster:
        """A booster before the first round, or after the rounds of ``init``."""
        patterns, extended = self.data.grammar.patterns, self.extends
        forest = Forest.join(self.data.targets.n_labels, [])
        weights = np.zeros(len(patterns))
        for potential in self.data.given:
            if isinstance(potential, BaseModel):
                weights = patterns.carry_over(potential.patterns, potential.pattern_weights)
        if extended is not None:
            forest = self.trees.forest
            weights = patterns.carry_over(extended.grammar.patterns, extended.pattern_weights)
        seed, have_directions = self.settings.sampling.seed, self.settings.have_directions
        return self._boost(Rounds.begin(forest, weights, seed, have_directions=have_directions))

    def resume(self, state: State) -> Booster:
        """A booster after the rounds of a checkpoint."""
        n_labels, n_patterns = self.data.targets.n_labels, len(self.data.grammar.patterns)
        if self.refiner is not None:
            self._restore_queries(unpack_queries(state))
        have_directions = self.settings.have_directions
        rounds = Rounds.unpack(
            state, n_labels, n_patterns, self.columns, have_directions=have_directions
        )
        return self._boost(rounds, state)

    def _restore_queries(self, queries: RelationalFeatures | None) -> None:
        """Restore the queries of a checkpoint, including extended ones."""
        assert self.refiner is not None
        require(queries is not None, "its queries are missing")
        assert queries is not None
        n_known = len(self.refiner.queries)
        with expecting("its queries are not valid"):
            self.refiner = self.scoring.refiner = self.refiner.with_queries(queries)
        self.scoring.add_queries(list(self.refiner.queries)[n_known:])
        self.columns = self.scoring.columns

    def queries(self, update: Booster) -> RelationalFeatures | None:
        """All queries, including extended ones."""
        return self.data.queries if self.refiner is None else self.refiner.features()

    def renew(self, seed: int, share: float) -> BoostingTrainer:
        """A trainer without ``init``: it does all rounds itself, with at most `FEW_BINS` bins."""
        crf = copy(self.crf)
        crf.random_state, crf.n_rounds = seed, self.n_before + self.n_steps
        crf.max_bins = min(crf.max_bins, FEW_BINS)
        crf.min_pattern_count = round(share * crf.min_pattern_count)
        return type(self)(crf, self.objective)

    def attributes(self, update: Booster, state: TrainingState) -> dict[str, Any]:
        """The best round, and the number of rounds for the likelihood."""
        n_rounds = update.rounds.n_kept_rounds
        n_warm = min(self.schedule.warm_rounds, n_rounds) if self.schedule.stages else n_rounds
        return {"best_round_": state.best_step, "n_warm_rounds_": n_warm}

    def _boost(self, rounds: Rounds, state: State | None = None) -> Booster:
        sampling = replace(self.settings.sampling, seed=rounds.seed)
        settings, binned = replace(self.settings, sampling=sampling), self.prepare(self.sequences)
        self.scoring.complete(binned)
        del self.sequences  # trees need only the bins
        growth = None
        if self.refiner is not None:
            growth = QueryGrowth(self.refiner, self.scoring, binned, self._lay_out, self.settings)
        return Booster(
            self.scoring,
            binned,
            self._prepare_trees(settings, binned),
            self.data,
            settings,
            self.schedule,
            rounds,
            self.n_before + self.n_steps,
            state,
            growth,
        )

    def _prepare_trees(
        self, settings: Settings, binned: Binned
    ) -> Callable[[PatternBound, RunningScores], TreeTraining[Any, Any]]:
        """What trains trees."""
        data = self._lay_out(binned.bins)
        binned.laid_out = data  # before there are scores, which use it
        return partial(train_trees, self.data, settings, data=data)

    def _lay_out(self, bins: _core.Bins) -> _core.TreeData:
        """Bins in the layout for growing trees, for splits on the window and on ancestors."""
        before, after = read_window(self.crf.window)
        ancestors = int(self.crf.ancestors)
        counts, comm, n_threads = None, self.data.targets.comm, self.settings.n_threads
        if comm.size > 1:
            own = _core.BinCounts.of(bins, n_threads)
            counts = own.replaced(comm.sum(own.to_array()))
        return _core.TreeData(bins, before, after, ancestors, n_threads, counts)

    def _read_settings(self) -> Settings:
        crf, data = self.crf, self.data
        rules = read_column_rules(
            crf.monotone_constraints, crf.interaction_constraints, self.columns, data.labels
        )
        if rules is not None and self.extends is not None and not rules.are_kept(self.trees.forest):
            raise ValueError(
                "the trees of init, which are kept, violate monotone_constraints or "
                "interaction_constraints; train init with them, or fit without init"
            )
        return Settings.read(crf, data.targets.n_labels, rules, self.columns.fills)

    def _check_memory(self) -> None:
        """Raise ValueError if scores of label pairs or contexts do not fit into memory."""
        n_positions = len(self.data.targets.codes)
        n_edges = len(self.data.trellis.edge_contexts().labels)
        # Scores before and after a step, directions and their slopes, float32; for each example a
        # gradient and a probability.
        n_bytes = 16 + 4 * self.settings.n_direction_arrays
        needed, there = n_bytes * n_positions * n_edges, machine_memory()
        if there is not None and needed > there:
            raise ValueError(
                f"transitions='trees' would take about {needed / 2**30:,.1f} GiB for "
                f"{count_of(n_positions, 'position')} and {count_of(n_edges, 'arc')} between "
                f"labels, and this machine has {there / 2**30:,.1f} GiB; use "
                "transitions='weights', fewer sequences, or a smaller order"
            )

    def _plan(self) -> Schedule:
        """The objective of each round; rounds of `init` for the likelihood are warm-up rounds."""
        objective, warm_rounds = self.objective, self.crf.warm_rounds
        if isinstance(objective, Likelihood):
            return Schedule()
        if not objective.needs_warm_start:
            warm_rounds = 0
        elif warm_rounds is None:
            warm_rounds = objective.warm_fifths * self.n_steps // 5 if self.extends is None else 0
        return Schedule(max(int(warm_rounds), self.n_warm_before), objective.stages())


def check_same_missing(method: MissingMethod, of_init: MissingMethod) -> None:
    """Raise ValueError if added trees would treat missing values differently."""
    if method != of_init:
        raise ValueError(
            f"missing is {method!r}, but the trees of init, which are kept, were trained with "
            f"missing={of_init!r}; pass missing={of_init!r}, or fit without init"
        )


def check_refinable(crf: TreeParameters) -> None:
    """Raise ValueError for a parameter that needs a fixed set of columns."""
    refused = {
        "transitions": crf.transitions == "trees",
        "monotone_constraints": crf.monotone_constraints is not None,
        "interaction_constraints": crf.interaction_constraints is not None,
        "missing": crf.missing in ("impute", "indicator"),
    }
    for name, is_set in refused.items():
        if is_set:
            raise ValueError(
                f"{name} is {getattr(crf, name)!r}, which cannot be combined with trees that "
                "extend queries, because these add columns during training; set max_literals=1 "
                f"to turn this off, or leave {name} out"
            )


def add_labels(columns: Columns, data: TrainingSet) -> Columns:
    """The columns, with previous labels as further columns."""
    names = tuple(map(str, data.labels.classes.tolist()))
    if len(names) > MAX_LABELS:
        raise ValueError(
            f"y has {len(names)} labels; transitions='trees' takes up to {MAX_LABELS}: use "
            "transitions='weights'"
        )
    contexts = data.trellis.edge_contexts()
    return replace(columns, labels=names, n_lags=contexts.before.shape[1])


def machine_memory() -> int | None:
    """Bytes of memory of this machine; None if unknown."""
    names = getattr(os, "sysconf_names", {})
    if not {"SC_PHYS_PAGES", "SC_PAGE_SIZE"} <= set(names):  # Windows
        return None
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _cut_history(history: History, n_rounds: int) -> dict[str, list[float]]:
    """History of the first `n_rounds` rounds of a model, without metrics that some rounds lack."""
    n_noted = len(history.get("loss", ()))
    return {
        name: list(figures[:n_rounds])
        for name, figures in history.items()
        if len(figures) == n_noted
    }
