"""Recipes: plain data, there and back."""

import json

import pytest

from hedgerow.files import Recipe

RECIPES = [
    Recipe("crfsuite", delimiter="\t"),
    Recipe("conll", ("0", "1"), 1, features=(0,), template=("U:%x[0,0]", "B")),
    Recipe("csv", ("g", "x", "y"), 2, 0, (1,), ("text", "number", "text"), delimiter=";"),
]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.format)
def test_there_and_back(recipe):
    assert Recipe.from_json(json.loads(json.dumps(recipe.to_json()))) == recipe


@pytest.mark.parametrize(
    "change",
    [
        {"format": "xml"},
        {"label": 7},
        {"label": True},
        {"features": [2]},
        {"features": ["0"]},
        {"group": -1},
        {"columns": [1, 2]},
        {"kinds": ["text"]},
        {"template": ["Q"]},
        {"delimiter": 3},
        {"delimiter": "x"},
        {"delimiter": ""},
        {"delimiter": []},
        {"named": None},
        {"columns": []},
        {"columns": 5},
        {"columns": "ab"},
        {"features": None},
        {"features": [], "template": None},
        {"features": {"0": 1}},
        {"features": [[0]]},
        {"group": [0]},
        {"kinds": ["text", "text"]},
        {"kinds": 7},
        {"template": 5},
        {"template": False},
        {"template": ""},
        {"template": "U"},
        {"template": [["U"]]},
        {"format": []},
        {"format": "csv"},
        {"format": "csv", "kinds": ["text", "text"]},
        {"format": "csv", "group": 0, "kinds": ["text", []]},
        {"format": "csv", "group": 0, "kinds": ["text", "date"]},
    ],
    ids=str,
)
def test_what_makes_no_sense(change):
    with pytest.raises(ValueError, match=r"inconsistent recipe|a line that begins with U"):
        Recipe.from_json(RECIPES[1].to_json() | change)


@pytest.mark.parametrize("values", [{}, [], None, {"format": "conll"}])
def test_what_is_no_recipe(values):
    with pytest.raises(ValueError, match="expected a recipe with the entries columns, deli"):
        Recipe.from_json(values)
