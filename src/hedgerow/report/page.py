"""The page: a template, filled with styles, scripts and data."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np

from hedgerow import persist
from hedgerow.counting import count_of
from hedgerow.decoding import Decode, check_decode
from hedgerow.encode.forms import settle
from hedgerow.encode.group_column import split_off_groups
from hedgerow.estimator import Estimator
from hedgerow.fitted import check_fitted, read_inputs
from hedgerow.label_colours import COLOURS
from hedgerow.raw_data import RawData
from hedgerow.report.blob import Blob
from hedgerow.report.browser import pack_browser
from hedgerow.report.comparison import check_same, recode
from hedgerow.report.comparison import compare as compare_readings
from hedgerow.report.features import read_features
from hedgerow.report.quality import compare_decoders, count_confusion, measure
from hedgerow.report.reading import Reading, read_data
from hedgerow.report.segments import describe_segments
from hedgerow.report.summary import describe_history, describe_model, describe_source
from hedgerow.report.trees import pack_trees
from hedgerow.report.weights import describe_features, describe_pairs, describe_patterns
from hedgerow.shown import with_plain_tables
from hedgerow.tree_crf import TreeCRF
from hedgerow.version import __version__

# In the order in which the page reads them.
STYLES = ("base.css", "pictures.css", "browser.css", "narrow.css")
SCRIPTS = (
    "dom.js",
    "data.js",
    "colours.js",
    "export.js",
    "list.js",
    "grid.js",
    "table.js",
    "chart.js",
    "summary.js",
    "comparison.js",
    "curves.js",
    "labels.js",
    "segments.js",
    "features.js",
    "trees.js",
    "calibration.js",
    "sequences.js",
    "features_at.js",
    "pen.js",
    "timeline.js",
    "explanation.js",
    "browser.js",
    "main.js",
)


def write_report(
    model: Estimator,
    path: str | os.PathLike[str],
    X: Any = None,
    y: Any = None,
    *,
    groups: Any = None,
    title: str | None = None,
    decode: Decode | None = None,
    parents: Any = None,
    base_scores: Any = None,
    X_base: Any = None,
    names: Sequence[str] | None = None,
    source: str | os.PathLike[str] | None = None,
    compare: Estimator | None = None,
    X_compare: Any = None,
    compare_title: str | None = None,
) -> list[str]:
    """Write a report about a model, and its errors on some data, as one HTML file.

    The file needs no network and no other files. Without data it has the learning curves, the
    transitions, the most important features, and the trees. With X it also has a browser of
    sequences, and with y their errors, the confusion matrix, segments, and calibration. With a
    second model it compares the two.

    Parameters
    ----------
    model : fitted TreeCRF or LinearCRF
    path
        The file to write; it is written atomically.
    X, y, groups, base_scores, X_base
        Data, as for `fit`. Labels may be missing, or unknown to the model.
    title
        Title of the page; None: "TreeCRF report" or "LinearCRF report".
    decode : {"viterbi", "marginal"} or None
        The decoder; None: ``decode_`` of the model. The scores of the other decoder are shown next
        to those of this one.
    parents
        Parents of the positions, for a model that was fitted with parents, see `fit`.
    names
        Names of the sequences; None: the ids of the groups, if there are groups.
    source
        The file that the data come from. The page shows its name and, if it exists, the date of its
        last modification.
    compare : fitted TreeCRF or LinearCRF, optional
        A second model, to compare with `model` on the same data. If only one of the two
        was fitted with `parents`, `base_scores` or `X_base`, the other one ignores them.
    X_compare
        The same sequences with the features of the second model; None: `X`.
    compare_title
        Name of the second model on the page; None: the name of its class.

    Returns
    -------
    list of str
        Notes about what the page leaves out, such as sequences if there are very many. The page
        shows these notes too.

    Examples
    --------
    >>> import tempfile
    >>> from hedgerow import LinearCRF
    >>> from hedgerow.report import write_report
    >>> X, y = [[{"word": "the"}, {"word": "man"}]], [["D", "N"]]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(LinearCRF().fit(X, y), f"{folder}/report.html", X, y)
    []
    """
    _check_model(model, "model")
    if not isinstance(path, str | os.PathLike):
        raise TypeError(
            f"path is of type {type(path).__name__}; expected the name of the file to write: "
            "write_report(model, path, X, y)"
        )
    check_decode(decode)
    raw = RawData(X, y, groups, parents, base_scores, X_base).repeatable()
    if X is None and any(part is not None for part in (y, groups, parents, base_scores, X_base)):
        raise ValueError(
            "y, groups, parents, base_scores and X_base go with X; call write_report(model, path, "
            "X, y)"
        )
    kind = type(model).__name__
    rival = None
    if compare is not None:
        _check_model(compare, "compare")
        if X is None:
            raise ValueError(
                "compare needs data; call write_report(model, path, X, y, compare=...)"
            )
        raw_compare = raw if X_compare is None else replace(raw, X=X_compare).repeatable()
        raw, raw_compare = _leave_out(raw, model, compare), _leave_out(raw_compare, compare, model)
        rival = _Rival(
            with_plain_tables(compare),
            raw_compare,
            (
                kind if title is None else str(title),
                type(compare).__name__ if compare_title is None else str(compare_title),
            ),
        )
    elif X_compare is not None:
        raise ValueError(
            "X_compare is the data of a second model; pass compare=... too, or leave X_compare out"
        )
    notes: list[str] = []
    decode_model = decode or model.decode_
    data, blobs = _describe_model(with_plain_tables(model), decode_model, notes)
    if X is not None:
        more, more_blobs = _describe_data(
            with_plain_tables(model), raw, decode, notes, names=names, rival=rival
        )
        data |= more
        blobs += more_blobs
    data |= {
        "title": f"{kind} report" if title is None else str(title),
        "version": __version__,
        "palette": COLOURS,
        "source": None if source is None else describe_source(source),
        "notes": notes,
    }
    text = _fill_template(data, blobs)
    persist.write_file(Path(path), text.encode(errors="xmlcharrefreplace"))
    return notes


class _Rival(NamedTuple):
    """A second model, its data, and the names of both models."""

    model: Estimator
    raw: RawData
    names: tuple[str, str]


def _leave_out(raw: RawData, model: Estimator, other: Estimator) -> RawData:
    """The data without the arguments that only the other model was fitted with."""
    return replace(
        raw,
        **dict.fromkeys(model.model_.unused_arguments - other.model_.unused_arguments),
    )


def _check_model(model: Any, name: str) -> None:
    if not isinstance(model, Estimator):
        raise TypeError(
            f"{name} is of type {type(model).__name__}; expected a fitted TreeCRF or LinearCRF"
        )
    check_fitted(model)


def _describe_model(
    model: Estimator, decode: Decode, notes: list[str]
) -> tuple[dict[str, Any], list[Blob]]:
    """The part of the page that describes a model without data."""
    blobs = [Blob("trees")]
    data: dict[str, Any] = {
        "model": describe_model(model, decode),
        "history": describe_history(model),
        "pairs": describe_pairs(model),
        "patterns": describe_patterns(model, notes),
        "features": describe_features(model, notes),
        "trees": pack_trees(model, blobs[0], notes) if isinstance(model, TreeCRF) else None,
    }
    if (base := getattr(model, "base_", None)) is not None:
        notes.append(
            "The page shows features and trees without the base model; to see the base model, a "
            f"{type(base).__name__}, write a report about model.base_ in Python."
        )
    return data, blobs


def _describe_data(
    model: Estimator,
    raw: RawData,
    decode: Decode | None,
    notes: list[str],
    *,
    names: Sequence[str] | None,
    rival: _Rival | None,
) -> tuple[dict[str, Any], list[Blob]]:
    """The part of the page that describes a model and some data."""
    sequences = read_inputs(model, raw).sequences
    reading = read_data(model, sequences, raw.y, decode or model.decode_)
    compared, comparison = None, None
    if rival is not None:
        others = read_inputs(rival.model, rival.raw).sequences
        check_same(sequences, others)  # before y is read: it has the sequences of the first
        other = read_data(rival.model, others, rival.raw.y, decode or rival.model.decode_)
        reading, compared = recode(reading, other)
        comparison = compare_readings(reading, other, compared, rival.names)
    data = _describe_reading(reading)
    data["comparison"] = comparison
    X = model.model_.find_attributes(raw.X)
    features = read_features(X, raw.groups, reading.sequences)
    if names is None:
        names = _name_sequences(model, raw.X, raw.groups, reading)
    elif len(names) != reading.sequences.n_sequences:
        raise ValueError(
            f"names has {count_of(len(names), 'name')} but X has "
            f"{count_of(reading.sequences.n_sequences, 'sequence')}; pass one name per sequence"
        )
    data["browser"], blobs = pack_browser(
        model, reading, features, notes, names=names, compared=compared
    )
    return data, blobs


def _describe_reading(reading: Reading) -> dict[str, Any]:
    described: dict[str, Any] = {
        "labels": reading.labels,
        "n_sequences": reading.sequences.n_sequences,
        "n_positions": reading.sequences.n_positions,
        "scores": measure(reading),
        "decoders": compare_decoders(reading),
        "segments": describe_segments(reading),
    }
    if reading.calibration is not None and reading.known.any():
        described["confusion"] = count_confusion(reading)
        described["calibration"] = reading.calibration.to_json()
    return described


def _name_sequences(model: Estimator, X: Any, groups: Any, reading: Reading) -> list[str] | None:
    """Ids of the groups, if X is flat and has groups."""
    if groups is None and model.group_column is not None and reading.sequences.flat:
        groups, _ = split_off_groups(settle(X, "X"), model.group_column, "X")
    if groups is None:
        return None
    series = nw.from_native(groups, series_only=True, pass_through=True)
    ids = series.to_list() if isinstance(series, nw.Series) else np.asarray(groups).tolist()
    return [str(ids[begin]) for begin in reading.sequences.offsets[:-1].tolist()]


def _fill_template(data: dict[str, Any], blobs: list[Blob]) -> str:
    """The complete page. The only user text in its HTML is the title, escaped."""
    # In an HTML script element, only "<" can begin something that ends it.
    content = json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    parts = {
        "title": html.escape(data["title"]),
        "styles": "\n".join(map(_asset, STYLES)),
        "data": content,
        "blobs": "\n".join(
            f'<script type="text/plain" id="blob-{blob.name}">{blob.pack()}</script>'
            for blob in blobs
        ),
        "scripts": "\n".join(map(_asset, SCRIPTS)),
    }
    # All at once, so that nothing in one part is mistaken for a placeholder.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _asset("page.html"))


def _asset(name: str) -> str:
    return (resources.files("hedgerow.report") / "assets" / name).read_text("utf-8")
