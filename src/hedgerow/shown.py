"""Shown: how an estimator is displayed, in notebooks and as tables."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from typing import Any, ClassVar, TypeVar

from sklearn.base import BaseEstimator

from hedgerow import notebook
from hedgerow.counting import count_of
from hedgerow.history import History
from hedgerow.model import Model
from hedgerow.tables import Output, Table, check_output, choose_output

__all__ = ["Shown", "best_step", "with_plain_tables"]

AnyShown = TypeVar("AnyShown", bound="Shown")


class Shown(BaseEstimator):  # type: ignore[misc]
    """Base class of the estimators with all methods for display; it does not train or predict."""

    step_name: ClassVar[str]  # what a step of training is called
    model_: Model
    history_: History

    def set_output(self: AnyShown, *, transform: Output | None = None) -> AnyShown:
        """Set the type of the tables that are returned, as for scikit-learn's transformers.

        This applies to `patterns`, `transition_weights` and so on, and to tables of explanations.
        Without it, ``sklearn.set_config(transform_output="pandas")`` sets the type. Without either,
        tables are frames of the library whose frames the model was fitted on, if there is one.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None
            "default": a dict of arrays that prints as a table, `hedgerow.tables.Table`; "pandas" or
            "polars": a DataFrame. None: do not change the setting.

        Returns
        -------
        The estimator itself.

        Examples
        --------
        >>> from hedgerow import LinearCRF
        >>> crf = LinearCRF(order=0).fit([[["w"], ["v"]]], [["A", "B"]])
        >>> type(crf.weights()).__name__
        'Table'
        >>> crf.set_output(transform="pandas").weights().columns.tolist()
        ['attribute', 'label', 'weight']
        """
        check_output(transform)
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}  # `clone` copies it
        return self

    @property
    def _output(self) -> Output:
        asked = getattr(self, "_sklearn_output_config", {}).get("transform")
        return choose_output(asked, self.model_.schema.library)

    def _give(self, table: Table) -> Any:
        """A table, converted to the output type."""
        return table.to(self._output)

    @property
    @abstractmethod
    def _n_kept(self) -> int:
        """Number of rounds or iterations that the model keeps."""

    @abstractmethod
    def _sizes(self) -> dict[str, int]:
        """The size of the model: what is counted, and its number."""

    def _repr_html_inner(self) -> str:
        """HTML for notebooks: a summary of training next to scikit-learn's diagram."""
        return self._beside(super()._repr_html_inner())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """HTML and text for newer notebooks."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] = self._beside(bundle["text/html"])
        return bundle

    def _beside(self, box: str) -> str:
        if not hasattr(self, "model_"):
            return box
        best = best_step(self)
        plots = notebook.curves(self.history_, self.step_name, best)
        summary = notebook.card(type(self).__name__, notebook.facts(self._facts()), plots)
        return notebook.side_by_side(summary, box)

    def _facts(self) -> dict[str, str]:
        """The most important facts about the model."""
        schema, kept, best = self.model_.schema, self._n_kept, best_step(self)
        n_steps, names = self.history_.n_steps, schema.column_names()
        facts = {
            count_of(len(self.classes_), "label"): notebook.enumerate_some(self.classes_.tolist())
        }
        if schema.kind == "columns":
            facts[count_of(schema.n_features, "column")] = notebook.enumerate_some(names)
        sizes = {**self._sizes(), "label pattern": len(self.model_.grammar.patterns)}
        facts["size"] = ", ".join(count_of(number, name) for name, number in sizes.items())
        if (base := getattr(self, "base_", None)) is not None:
            facts["on top of"] = f"a {type(base).__name__}"
        of_all = f" of {n_steps:,}" if n_steps > kept else ""
        judge = "held-out sequences" if "validation_loss" in self.history_ else "the eval set"
        note = "" if best is None else f", the best on {judge}: {best:,}"
        facts[f"{self.step_name}s"] = f"{kept:,}{of_all}{note}"
        figures = self.history_.at(kept if best is None else best)
        if figures:
            step = kept if best is None else best
            shown = (f"{name} {figure:.4g}" for name, figure in figures.items())
            facts[f"at {self.step_name} {step:,}"] = ", ".join(shown)
        facts["decoding"] = self.decode_
        return facts


def best_step(crf: Shown) -> int | None:
    """Round or iteration with the best metric on the eval set; None without one."""
    best: int | None = getattr(crf, "best_round_" if crf.step_name == "round" else "best_iter_")
    return best


def with_plain_tables(crf: AnyShown) -> AnyShown:
    """The same model with tables that are dicts of arrays, whatever the output type."""
    return copy(crf).set_output(transform="default")
