"""Tables, and the form in which they are returned."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone

from hedgerow import LinearCRF, TreeCRF, load
from hedgerow.shown import with_plain_tables
from hedgerow.tables import MAX_SHOWN, Table
from reference.estimators import small

Y = [["a", "b", "a"], ["b", "a"]]
FORMS = {
    "pandas": [
        pd.DataFrame({"n": [0.5, 1, 2], "w": ["x", "y", "x"]}),
        pd.DataFrame({"n": [1.0, 2], "w": ["y", None]}),
    ],
    "default": [
        [{"n": 0.5, "w": "x"}, {"n": 1.0, "w": "y"}, {"n": 2.0, "w": "x"}],
        [{"n": 1.0}] * 2,
    ],
}
FORMS["polars"] = [pl.from_pandas(frame) for frame in FORMS["pandas"]]
TYPES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "default": Table}


@pytest.fixture(params=FORMS)
def form(request):
    return request.param


def fitted(estimator, form, **parameters):
    return small(estimator, **parameters).fit(FORMS[form], Y)


def all_tables(crf, x):
    explanation = crf.explain(x, 1)
    tables = [crf.patterns(), crf.transition_weights()]
    tables += [crf.trees(), crf.importances()] if isinstance(crf, TreeCRF) else [crf.weights()]
    return [*tables, explanation.features, explanation.transitions, explanation.to_table()]


def columns_of(table):
    if isinstance(table, Table):
        return {name: column.tolist() for name, column in table.items()}
    found = (
        table.to_dict(orient="list")
        if isinstance(table, pd.DataFrame)
        else table.to_dict(as_series=False)
    )
    return {
        name: [tuple(value) if isinstance(value, list) else plain(value) for value in column]
        for name, column in found.items()
    }


def plain(value):
    return None if isinstance(value, float) and np.isnan(value) else value


def test_tables_are_frames_of_the_library_that_the_model_was_fitted_on(estimator, form):
    crf = fitted(estimator, form)
    found = all_tables(crf, FORMS[form][0])
    assert {type(table) for table in found} == {TYPES[form]}
    for table, dicts in zip(found, all_tables(with_plain_tables(crf), FORMS[form][0]), strict=True):
        expected = columns_of(dicts)
        for name, column in columns_of(table).items():
            assert list(map(plain, column)) == list(map(plain, expected[name])), name


@pytest.mark.parametrize("kind", TYPES)
def test_set_output_comes_first_then_the_configuration(form, kind):
    estimator = TreeCRF if form == "pandas" else LinearCRF
    crf, x = fitted(estimator, form), FORMS[form][0]
    with sklearn.config_context(transform_output=kind):
        expected = TYPES[form] if kind == "default" else TYPES[kind]  # "default" says nothing
        assert {type(table) for table in all_tables(crf, x)} == {expected}
        for other, cls in TYPES.items():
            assert crf.set_output(transform=other) is crf
            assert {type(table) for table in all_tables(crf, x)} == {cls}
    assert crf.set_output() is crf  # leaves it as it is
    assert isinstance(crf.patterns(), TYPES["default" if other == "default" else other])


def test_what_is_set_stays(estimator, tmp_path):
    crf = small(estimator).set_output(transform="polars")
    for same in (crf, clone(crf), pickle.loads(pickle.dumps(crf))):
        assert isinstance(same.fit(FORMS["pandas"], Y).patterns(), pl.DataFrame)
    crf.save(tmp_path / "model")
    assert isinstance(load(tmp_path / "model").patterns(), Table)  # a file knows no library
    assert isinstance(
        load(tmp_path / "model").set_output(transform="pandas").patterns(), pd.DataFrame
    )


def test_the_library_is_no_part_of_a_model(estimator, tmp_path):
    for form in ("pandas", "polars"):
        fitted(estimator, form).save(tmp_path / form)
    assert (tmp_path / "pandas").read_bytes() == (tmp_path / "polars").read_bytes()


def test_a_form_that_is_not_known():
    with pytest.raises(ValueError, match="transform is 'arrow'; expected 'default', 'pandas' or"):
        LinearCRF().set_output(transform="arrow")


def test_empty_tables(form):
    crf = fitted(LinearCRF, form, order=0)
    assert isinstance(crf.patterns(), TYPES[form])
    assert len(crf.transition_weights()["weight"]) == 0


def test_a_table_is_a_dict_of_arrays_that_shows_itself():
    table = fitted(LinearCRF, "default").weights()
    assert isinstance(table, dict)
    assert list(pd.DataFrame(table).columns) == list(pl.DataFrame(table).columns) == list(table)
    lines = repr(table).split("\n")
    assert lines[0].split() == ["attribute", "label", "weight"]
    assert len(lines) == 1 + len(table["weight"])
    assert repr(Table()) == "an empty table"
    assert pickle.loads(pickle.dumps(table)).keys() == table.keys()


def test_long_tables_and_long_texts():
    n_rows = MAX_SHOWN + 980
    table = Table({"n": np.arange(n_rows), "text": np.full(n_rows, "x" * 99, object)})
    lines = repr(table).split("\n")
    assert lines[-1] == "... 1,000 rows in all"
    assert len(lines) == MAX_SHOWN + 2
    assert max(map(len, lines)) < 80
    assert "1,000 rows in all" in table._repr_html_()
    assert table._repr_html_().count("<tr>") == MAX_SHOWN + 1


def test_plots_and_reports_take_models_with_frames(form, tmp_path):
    from hedgerow import plots
    from hedgerow.report import write_report

    crf = fitted(TreeCRF, form)
    assert plots.importances(crf) is not None
    write_report(crf, tmp_path / "page.html", FORMS[form], Y)
