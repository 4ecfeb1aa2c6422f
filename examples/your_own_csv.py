"""Train on your own CSV file: one row per time step, and a column with the sequence ids.

It first writes two small files with sensor data of a coffee machine, and then trains and evaluates
models in Python. At the end it prints commands that do this in a shell, and also label a file and
write a report. ``--folder build`` keeps the files in that folder.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from pathlib import Path

import numpy as np

from hedgerow import TreeCRF, load
from hedgerow.files import make_recipe, read_file

FOLLOWS = {"off": "heating", "heating": "ready", "ready": "brewing", "brewing": "ready"}
WATTS = {"off": 2, "heating": 900, "ready": 60, "brewing": 700}
STAYS = {"off": 0.85, "heating": 0.6, "ready": 0.8, "brewing": 0.4}


def write_days(path: Path, n_days: int, rng: np.random.Generator) -> None:
    """Write power, temperature and light in the kitchen; some values of power are missing."""
    with path.open("w", newline="", encoding="utf8") as file:
        table = csv.writer(file)
        table.writerow(["day", "watts", "degrees", "light", "state"])
        for day in range(n_days):
            state, degrees = "off", 20.0
            for _ in range(40):
                goal = 20 if state == "off" else 90
                degrees += 0.4 * (goal - degrees) + rng.normal(0, 8)
                watts = "" if rng.random() < 0.2 else round(rng.normal(WATTS[state], 300))
                light = rng.choice(["on", "off"], p=[0.3, 0.7] if state == "off" else [0.7, 0.3])
                table.writerow([day, watts, round(degrees, 1), light, state])
                if rng.random() > STAYS[state]:
                    leaves = state == "ready" and rng.random() < 0.2
                    state = "off" if leaves else FOLLOWS[state]


def compare(folder: Path) -> None:
    """Train on train.csv, and score test.csv."""
    print("The file begins like this:")
    print(*(folder / "train.csv").read_text().splitlines()[:4], sep="\n")

    recipe = make_recipe(folder / "train.csv", label="state", group="day")
    train, test = (read_file(folder / name, recipe) for name in ("train.csv", "test.csv"))
    crf = TreeCRF(window=2, n_rounds=60, max_depth=4, subsample=0.5, random_state=0)
    crf.fit(train.X, train.y)
    alone = TreeCRF(order=0, n_rounds=60, max_depth=4, subsample=0.5, random_state=0)
    alone.fit(train.X, train.y)
    crf.save(folder / "coffee.hedgerow")
    crf = load(folder / "coffee.hedgerow")

    print(f"\naccuracy, rows separately:  {alone.score(test.X, test.y):.1%}")
    print(f"accuracy, with neighbours:  {crf.score(test.X, test.y):.1%}")
    importances = crf.importances()
    print("\nThe most important features:")
    for feature, offset in list(zip(importances["feature"], importances["offset"], strict=True))[
        :4
    ]:
        print(f"  {feature}, {'same row' if offset == 0 else f'{offset:+d} rows'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="keep the files in this folder")
    folder = parser.parse_args().folder
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as temporary:
        folder = folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        write_days(folder / "train.csv", 60, rng)
        write_days(folder / "test.csv", 20, rng)
        compare(folder)
    print(
        """
With --folder DIR the files are kept. In that folder, these commands train and evaluate the same
model, label the test file and write a report:
  hedgerow train train.csv -m coffee.hedgerow --label state --group day --window 2 \\
      --set n_rounds=60 --set max_depth=4 --set subsample=0.5 --seed 0
  hedgerow eval coffee.hedgerow test.csv
  hedgerow tag coffee.hedgerow test.csv -o labelled.csv --marginals
  hedgerow report coffee.hedgerow test.csv -o report.html"""
    )


if __name__ == "__main__":
    main()
