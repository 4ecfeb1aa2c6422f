"""The loop: step after step until enough is learnt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from hedgerow.checkpoint import Record
from hedgerow.progress import Progress
from hedgerow.training.eval_sets import EvalSet
from hedgerow.training.state import TrainingState
from hedgerow.training.stopping import Stopping
from hedgerow.training.update import Update

__all__ = ["train"]

Form = TypeVar("Form")


def train(
    update: Update[Form],
    state: TrainingState,
    eval_sets: Sequence[EvalSet[Form]],
    stopping: Stopping,
    progress: Progress,
    record: Record | None,
) -> None:
    """Advance until there is no step left, or someone says that it is enough.

    With patience the best step by the last eval set is kept, else the last. The training state is
    written to `record` from time to time.
    """

    def evaluate() -> dict[str, float]:
        """Figures of the eval sets; the last one says which step is the best."""
        figures: dict[str, float] = {}
        for eval_set in eval_sets:
            scores = update.score(eval_set.sequences)
            figures |= eval_set.measure(scores, update.n_threads)
        if eval_sets:
            figure = figures[f"{eval_sets[-1].name}_{stopping.metric}"]
            state.compare(update.n_done, figure if stopping.metric == "loss" else -figure)
        return figures

    if update.has_learnt and state.best_step is None:  # by a model to go on from
        evaluate()
    is_over = False
    while not (is_over or state.ended):
        is_over = not update.advance()
        if not is_over:
            figures = update.figures() | evaluate()
            state.note(figures)
            progress.update(figures)
            is_enough = _is_enough(state, update, stopping.patience)
            state.ended = stopping.call_back(update.n_done, figures) or is_enough
        if stopping.patience is None or state.best_step in (None, update.n_done):
            # Also if the step came to nothing: it may have been the first for another objective.
            update.keep()
        if record is not None:
            last = is_over or state.ended
            record.note(update.n_done, lambda: state.pack() | update.pack(), last=last)


def _is_enough(state: TrainingState, update: Update[Form], patience: int | None) -> bool:
    """Whether too many steps have passed since the best one."""
    if patience is None or state.best_step is None:
        return False
    return update.n_done - max(state.best_step, update.n_warm) >= patience
