"""A table of days, hour by hour: a small data set that is one flat table with groups."""

import numpy as np
import pandas as pd


def daily_table(n_days: int, seed: int = 0) -> pd.DataFrame:
    """Columns day, hour, heat and noise (numbers), weather (text) and state, the label."""
    random = np.random.default_rng(seed)
    lengths = random.integers(3, 9, n_days)
    days, hours = np.repeat(np.arange(n_days), lengths), np.concatenate([*map(np.arange, lengths)])
    states = random.integers(0, 3, len(days))
    follows = (hours > 0) & (random.random(len(days)) < 0.5)
    for place in np.flatnonzero(follows):
        states[place] = states[place - 1]
    weather = np.where(random.random(len(days)) < 0.6, states, random.integers(0, 3, len(days)))
    return pd.DataFrame(
        {
            "day": [f"d{day}" for day in days],
            "hour": hours,
            "heat": (states + random.normal(size=len(days))).round(2),
            "noise": random.normal(size=len(days)).round(2),
            "weather": np.array(["dry", "rain", "snow"])[weather],
            "state": np.array(["idle", "on", "wash"])[states],
        }
    )
