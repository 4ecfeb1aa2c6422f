"""The search of the documentation finds a page for each of the words that users type."""

import re

import pytest

from reference.pages import PAGES, ROOT

# What users type, and the page that they should find: every word in a heading or three times in
# the text, as the search of Sphinx ranks pages by headings first, then by occurrences.
WANTED = {
    "early stopping": "guides/early-stopping.md",
    "overfitting": "guides/overfitting.md",
    "class imbalance": "guides/class-imbalance.md",
    "class weight": "guides/class-imbalance.md",
    "parameter tuning": "guides/tuning.md",
    "optuna": "guides/tuning.md",
    "grid search": "guides/tuning.md",
    "random search": "guides/tuning.md",
    "cross-validation": "guides/with-scikit-learn.md",
    "pipeline": "guides/with-scikit-learn.md",
    "learning curve": "guides/overfitting.md",
    "regularization": "guides/overfitting.md",
    "missing values": "guides/missing.md",
    "feature importance": "guides/plots.md",
    "explain": "guides/explain.md",
    "confusion matrix": "guides/report.md",
    "calibration": "guides/report.md",
    "confidence interval": "guides/comparing-models.md",
    "bootstrap": "guides/comparing-models.md",
    "checkpoint": "guides/checkpoints.md",
    "resume": "guides/checkpoints.md",
    "warm start": "guides/checkpoints.md",
    "viterbi": "guides/decoding.md",
    "marginals": "guides/decoding.md",
    "window": "guides/from-xgboost.md",
    "xgboost": "guides/from-xgboost.md",
    "crfsuite": "guides/from-sklearn-crfsuite.md",
    "named entity": "guides/text-features.md",
    "csv": "guides/files.md",
    "command line": "guides/command-line.md",
    "notebook": "notebooks/index.md",
    "json": "guides/json.md",
    "subsample": "guides/sampling.md",
    "gpu": "guides/gpu.md",
    "predict_proba": "faq.md",
    "faq": "index.md",
}


def stem(word: str) -> str:
    """The word without a plural, so that "notebooks" is found by "notebook"."""
    return word.removesuffix("ies").removesuffix("es").removesuffix("s").removesuffix("y")


def words_of(text: str) -> list[str]:
    return [stem(word) for word in re.findall(r"[a-z0-9]+", text.lower())]


def rank(page, words):
    """Score of a page: words in headings count fifteen times; 0 if one is missing."""
    text = page.read_text(encoding="utf8")
    headings = words_of(" ".join(re.findall(r"^#+ (.*)$", text, re.MULTILINE)))
    body = words_of(text)
    counts = [15 * (word in headings) + body.count(word) for word in words]
    return sum(counts) if all(counts) else 0


@pytest.mark.parametrize(("query", "page"), WANTED.items(), ids=WANTED)
def test_a_search_finds_its_page(query, page):
    words = words_of(query)
    scores = {p: rank(p, words) for p in PAGES if p.is_relative_to(ROOT / "docs")}
    best = sorted(scores, key=lambda p: -scores[p])[:5]
    assert scores[ROOT / "docs" / page] > 0
    assert ROOT / "docs" / page in best, [str(p.relative_to(ROOT)) for p in best]


def test_there_are_thirty():
    assert len(WANTED) >= 30
