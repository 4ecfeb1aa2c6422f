"""Confidence intervals of the scores of a model, or of the differences of two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hedgerow.cli.text import format_share, format_table
from hedgerow.counting import count_of

if TYPE_CHECKING:
    from hedgerow.stats import Bootstrap

SCORES = {
    "accuracy": "accuracy",
    "sequence_accuracy": "sequence accuracy",
    "chunk_f1": "F1 of chunks",
}
FIGURES = ("value", "low", "high", "standard_error", "p_value")


@dataclass(frozen=True)
class Intervals:
    """Confidence intervals by name of the score; empty if they were not requested."""

    by_score: dict[str, Bootstrap]
    n_resamples: int

    @classmethod
    def find(
        cls,
        y_true: list[list[Any]],
        predictions: list[list[list[Any]]],
        n_resamples: int | None,
        *,
        have_chunks: bool,
        scheme: str | None,
    ) -> Intervals:
        """Resample the predictions of one model, or of two."""
        from hedgerow.stats import bootstrap
        from hedgerow.stats.tallies import ChunkMetric

        if n_resamples is None:
            return cls({}, 0)
        metrics: dict[str, Any] = {"accuracy": "accuracy", "sequence_accuracy": "sequence_accuracy"}
        if have_chunks:
            metrics["chunk_f1"] = ChunkMetric("f1", scheme)
        found = {
            name: bootstrap(metric, y_true, *predictions, n_resamples=n_resamples, random_state=0)
            for name, metric in metrics.items()
        }
        return cls(found, n_resamples)

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        if not self.by_score:
            return {}
        return {
            "bootstrap": {
                name: {figure: getattr(found, figure) for figure in FIGURES}
                for name, found in self.by_score.items()
            }
        }

    def print(self) -> None:
        """Print a table, after an empty line."""
        if not self.by_score:
            return
        header = ["95 % interval", "from", "to"]
        rows = [
            [SCORES[name], format_share(found.low), format_share(found.high)]
            for name, found in self.by_score.items()
        ]
        for row, found in zip(rows, self.by_score.values(), strict=True):
            if found.p_value is not None:
                header = ["first minus second", "difference", "from", "to", "p"]
                row[1:1] = [format_share(found.value)]
                row.append(f"{found.p_value:.3g}")
        print(f"\n{format_table(header, rows)}")
        print(f"from {count_of(self.n_resamples, 'bootstrap sample')} of whole sequences")
