"""The README's code runs as it stands."""

import re
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def test_the_code_of_the_readme_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf8"), re.DOTALL)
    names = {}
    exec(code, names)
    accuracy, rest = capsys.readouterr().out.split("\n", 1)
    assert float(accuracy) > 0.97
    first, best, second = rest.splitlines()
    assert first == "ommanding (9, 26)"
    assert best.split()[0] == "ommanding"
    assert float(best.split()[1]) > float(second.split()[1])
    assert (tmp_path / "letters.hedgerow").exists()
    assert names["crf"].classes_.tolist() == list("abcdefghijklmnopqrstuvwxyz")
