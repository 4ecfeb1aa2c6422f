"""The page: a template, filled with styles, scripts and data."""

from __future__ import annotations

import html
import json
import os
import re
from importlib import resources
from pathlib import Path
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np

from hedgerow import persist
from hedgerow.decoding import Decode, check_decode
from hedgerow.encode.forms import settle
from hedgerow.encode.group_column import split_off_groups
from hedgerow.estimator import Estimator
from hedgerow.predictor import check_fitted
from hedgerow.raw_data import RawData
from hedgerow.report.blob import Blob
from hedgerow.report.browser import pack_browser
from hedgerow.report.features import read_features
from hedgerow.report.quality import count_confusion, measure
from hedgerow.report.reading import Reading, read_data
from hedgerow.report.summary import describe_history, describe_model
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
    "list.js",
    "grid.js",
    "chart.js",
    "summary.js",
    "curves.js",
    "labels.js",
    "features.js",
    "trees.js",
    "calibration.js",
    "sequences.js",
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
) -> list[str]:
    """Write a page about a model, and how it does on some data, as one HTML file.

    The file needs nothing else: no network, no other file. Without data it has the learning curves,
    the weights of labels and features, and the trees. With X it has a browser of sequences too, and
    with y their errors, the confusion of labels, and calibration.

    Parameters
    ----------
    model : fitted TreeCRF or LinearCRF
    path
        Where to write it. The file is written beside its place and moved there when it is whole.
    X, y, groups, base_scores, X_base
        Data, as `fit` takes them. Labels may be missing, and some may be unknown to the model.
    title
        Heading of the page; the kind of model if None.
    decode : {"viterbi", "marginal"} or None
        How the sequences are labelled; None: ``decode_`` of the model. The accuracy of the other
        decoder stands beside that of this one.
    parents
        Parents of the positions, for a model that was fitted with parents, see `fit`.

    Returns
    -------
    list of str
        What was left out to keep the page small, in sentences; they stand on the page too.

    Examples
    --------
    >>> from hedgerow import LinearCRF
    >>> from hedgerow.report import write_report
    >>> X, y = [[{"word": "the"}, {"word": "man"}]], [["D", "N"]]
    >>> folder = getfixture("tmp_path")
    >>> write_report(LinearCRF().fit(X, y), folder / "report.html", X, y)
    []
    """
    if not isinstance(model, Estimator):
        raise TypeError(
            f"model is of type {type(model).__name__}; expected a fitted TreeCRF or LinearCRF"
        )
    check_fitted(model)
    check_decode(decode)
    raw = RawData(X, y, groups, parents, base_scores, X_base).repeatable()
    if X is None and any(part is not None for part in (y, groups, parents, base_scores, X_base)):
        raise ValueError(
            "y, groups, parents, base_scores and X_base go with X; pass write_report(model, path, "
            "X, y)"
        )
    notes: list[str] = []
    decode = decode or model.decode_
    data, blobs = _describe(with_plain_tables(model), raw, decode, notes)
    data |= {
        "title": f"{type(model).__name__} report" if title is None else str(title),
        "version": __version__,
        "notes": notes,
    }
    text = _fill_template(data, blobs)
    persist.write_file(Path(path), text.encode(errors="xmlcharrefreplace"))
    return notes


def _describe(
    model: Estimator, raw: RawData, decode: Decode, notes: list[str]
) -> tuple[dict[str, Any], list[Blob]]:
    """Everything that the page shows."""
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
            f"Features and trees are those on top of the base, a {type(base).__name__}; a report "
            "about model.base_ lists its own."
        )
    if raw.X is not None:
        reading = read_data(model, raw, decode)
        data |= _describe_reading(reading)
        names = _name_sequences(model, raw.X, raw.groups, reading)
        X = model.model_.find_attributes(raw.X)
        features = read_features(X, raw.groups, reading.sequences)
        data["browser"], more = pack_browser(reading, features, names, notes)
        blobs += more
    return data, blobs


def _describe_reading(reading: Reading) -> dict[str, Any]:
    described: dict[str, Any] = {
        "labels": reading.labels,
        "n_sequences": reading.sequences.n_sequences,
        "n_positions": reading.sequences.n_positions,
        "scores": measure(reading),
    }
    if reading.calibration is not None and reading.known.any():
        described["confusion"] = count_confusion(reading)
        described["calibration"] = reading.calibration.to_json()
    return described


def _name_sequences(model: Estimator, X: Any, groups: Any, reading: Reading) -> list[str] | None:
    """Ids of the groups, where X is flat and has any."""
    if model.group_column is not None and reading.sequences.flat:
        groups, _ = split_off_groups(settle(X, "X"), model.group_column, "X")
    if groups is None:
        return None
    series = nw.from_native(groups, series_only=True, pass_through=True)
    ids = series.to_list() if isinstance(series, nw.Series) else np.asarray(groups).tolist()
    return [str(ids[begin]) for begin in reading.sequences.offsets[:-1].tolist()]


def _fill_template(data: dict[str, Any], blobs: list[Blob]) -> str:
    """The whole page. No text of the user is ever part of its HTML, but for the title, escaped."""
    # In a script of HTML only "<" can begin anything that ends it.
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
    # All at once, so that nothing in a part is taken for a place to fill.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _asset("page.html"))


def _asset(name: str) -> str:
    return (resources.files("hedgerow.report") / "assets" / name).read_text("utf-8")
