"""Settings that may become the defaults of TreeCRF, and what they are compared with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# The previous defaults of TreeCRF, before this benchmark chose them; those relevant at order 1.
BEFORE: dict[str, Any] = {
    "learning_rate": 0.3,
    "max_depth": 6,
    "max_leaves": None,
    "min_child_weight": 1.0,
    "min_split_gain": 0.0,
    "reg_lambda": 1.0,
    "max_step": 1.0,
    "max_bins": 255,
    "colsample_bytree": 1.0,
    "colsample_bynode": 1.0,
    "trim": None,
    "subsample": 1.0,
    "stratified": False,
    "order": 1,
}
# Numbers of rounds after which a training run is measured.
STAGES = (50, 100, 200, 400)
PATIENCE = 20


@dataclass(frozen=True)
class Setting:
    """How a model is trained.

    Attributes
    ----------
    library : str
        hedgerow, xgboost or lightgbm.
    parameters : dict
        What differs from `BEFORE`; for other libraries, from their defaults.
    stages : tuple of int
        Numbers of rounds after which the model is measured; none: when training ends.
    """

    library: str = "hedgerow"
    parameters: dict[str, Any] = field(default_factory=dict)
    stages: tuple[int, ...] = STAGES

    @property
    def cost(self) -> float:
        """Approximate training time, relative to other settings on the same task."""
        if self.library != "hedgerow":
            return 1.0
        merged = BEFORE | self.parameters
        leaves = merged["max_leaves"] or 2 ** merged["max_depth"]
        return 0.5 * (0.3 + merged["subsample"]) * (1 + leaves / 64)


def grown(depth: int | None, leaves: int | None) -> dict[str, Any]:
    return {"max_depth": depth, "max_leaves": leaves}


SHAPES = {
    "depth 6": grown(6, None),
    "depth 8": grown(8, None),
    "depth 6, 31 leaves": grown(6, 31),
    "depth 8, 31 leaves": grown(8, 31),
    "depth 8, 64 leaves": grown(8, 64),
    "depth 10, 31 leaves": grown(10, 31),
    "depth 10, 64 leaves": grown(10, 64),
    "31 leaves": grown(None, 31),
}
# Combinations of a learning rate and a share of sequences, around which settings are varied.
GRID: dict[tuple[float, float], tuple[str, ...]] = {
    (0.1, 0.5): tuple(SHAPES),
    (0.2, 0.5): ("depth 6", "depth 8, 31 leaves", "depth 10, 31 leaves", "depth 10, 64 leaves"),
    (0.3, 0.5): ("depth 6", "depth 10, 31 leaves", "depth 10, 64 leaves"),
    (0.1, 1.0): ("depth 6", "depth 10, 31 leaves", "depth 10, 64 leaves"),
    (0.2, 1.0): ("depth 6", "depth 10, 31 leaves"),
    (0.3, 1.0): ("depth 10, 31 leaves",),
    (0.05, 0.5): ("depth 6", "depth 10, 64 leaves"),
    (0.15, 0.5): ("depth 10, 31 leaves", "depth 10, 64 leaves"),
    (0.1, 0.8): ("depth 10, 31 leaves", "depth 10, 64 leaves"),
}
CENTRES = {
    "A": SHAPES["depth 10, 64 leaves"] | {"learning_rate": 0.1, "subsample": 0.5},
    "B": SHAPES["depth 10, 31 leaves"] | {"learning_rate": 0.2, "subsample": 0.5},
}
# Parameters that are changed one at a time, for each of these combinations.
CHANGES: dict[str, dict[str, Any]] = {
    "min_child_weight 0.3": {"min_child_weight": 0.3},
    "min_child_weight 3": {"min_child_weight": 3.0},
    "reg_lambda 0.3": {"reg_lambda": 0.3},
    "reg_lambda 5": {"reg_lambda": 5.0},
    "colsample_bytree 0.5": {"colsample_bytree": 0.5},
    "colsample_bytree 0.8": {"colsample_bytree": 0.8},
    "colsample_bynode 0.5": {"colsample_bynode": 0.5},
    "trim 0": {"trim": 0.0},
    "trim 0.03": {"trim": 0.03},
    "max_step 0.5": {"max_step": 0.5},
    "max_step 3": {"max_step": 3.0},
}
# Early stopping with a tenth of the training sequences held out.
STOPPED: dict[str, dict[str, Any]] = {
    "before": {},
    "depth 6, rate 0.1, half": {"learning_rate": 0.1, "subsample": 0.5},
    "A": CENTRES["A"],
    "B": CENTRES["B"],
}


def make_settings() -> dict[str, Setting]:
    settings = {
        "before": Setting(),
        "xgboost": Setting("xgboost", stages=()),
        "lightgbm": Setting("lightgbm", stages=()),
    }
    for (rate, share), shapes in GRID.items():
        for shape in shapes:
            parameters = SHAPES[shape] | {"learning_rate": rate, "subsample": share}
            name = next((n for n, centre in CENTRES.items() if centre == parameters), None)
            own = f"{shape}, rate {rate:g}, share {share:g}"
            settings[f"{name}: {own}" if name else own] = Setting(parameters=parameters)
    for centre, parameters in CENTRES.items():
        for change, more in CHANGES.items():
            settings[f"{centre}, {change}"] = Setting(parameters=parameters | more)
    for name, parameters in STOPPED.items():
        stopping = {"early_stopping_rounds": PATIENCE, "validation_fraction": 0.1}
        settings[f"stopped: {name}"] = Setting(
            parameters=parameters | stopping, stages=(STAGES[-1],)
        )
    return settings


SETTINGS = make_settings()
