"""The README's code and commands run as they stand."""

from reference.pages import ROOT, run_page


def test_what_the_readme_says_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = run_page(ROOT / "README.md", capsys)
    assert (tmp_path / "letters.hedgerow").exists()
    assert names["crf"].classes_.tolist() == list("abcdefghijklmnopqrstuvwxyz")
