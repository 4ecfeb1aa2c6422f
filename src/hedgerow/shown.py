"""Shown: what an estimator shows of itself, in notebooks and as tables."""

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
    """Base of the estimators as far as they show themselves; none of it trains or predicts."""

    step_name: ClassVar[str]  # what a step of training is called
    model_: Model
    history_: History

    def set_output(self: AnyShown, *, transform: Output | None = None) -> AnyShown:
        """Set the form in which tables are returned, as scikit-learn's transformers have it.

        This holds for `patterns`, `transition_weights` and so on, and for tables of explanations.
        Without it they are frames of the library whose frames the model was fitted on, or of the
        one that ``sklearn.set_config(transform_output="pandas")`` names.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None
            "default": a dict of arrays that shows itself as a table, `hedgerow.tables.Table`;
            "pandas" or "polars": a DataFrame. None leaves everything as it is.

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
            self._sklearn_output_config = {"transform": transform}  # what `clone` takes along
        return self

    @property
    def _output(self) -> Output:
        asked = getattr(self, "_sklearn_output_config", {}).get("transform")
        return choose_output(asked, self.model_.schema.library)

    def _give(self, table: Table) -> Any:
        """A table in the form that the user works with."""
        return table.to(self._output)

    @property
    @abstractmethod
    def _n_kept(self) -> int:
        """Number of rounds or iterations whose result the model is."""

    @abstractmethod
    def _sizes(self) -> dict[str, int]:
        """How large the model is, in words."""

    def _repr_html_inner(self) -> str:
        """What a notebook shows: the training in short, beside scikit-learn's box."""
        return self._beside(super()._repr_html_inner())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """The same, for newer notebooks."""
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
        """What there is to know of the model at first."""
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
        judge = "what was held out" if "validation_loss" in self.history_ else "the eval set"
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
    """Number of rounds or iterations at which the eval set did best; None without one."""
    best: int | None = getattr(crf, "best_round_" if crf.step_name == "round" else "best_iter_")
    return best


def with_plain_tables(crf: AnyShown) -> AnyShown:
    """The same model, whose tables are dicts of arrays, whatever its user works with."""
    return copy(crf).set_output(transform="default")
