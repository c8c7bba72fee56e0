"""Evaluations that were made before a run: checked, and as the fields of trials."""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cylbo.record.history import History, checked_value
from cylbo.record.metadata import checked_metadata
from cylbo.record.trial import Trial
from cylbo.rendering import spelled
from cylbo.space.box import Box
from cylbo.space.checks import checked_numbers
from cylbo.space.named import Frame
from cylbo.types import Array

__all__ = ["checked_earlier", "checked_trials", "earlier_trials"]

Fields = dict[str, Any]


def checked_earlier(x0: Any, y0: ArrayLike | None, frame: Box | Frame) -> tuple[Array, Array | None]:  # noqa: ANN401
    """Points (k, d), and their values (k,) if they have been evaluated."""
    if x0 is None:
        if y0 is not None:
            raise ValueError("y0 was given without x0; pass the (k, d) points that gave these values as x0.")
        return np.empty((0, frame.dim)), None
    points = frame.checked_evaluated(x0, "x0")
    if y0 is None:
        return points, None
    values = checked_numbers(y0, "y0")
    if np.asarray(y0).dtype == bool:
        raise TypeError(f"y0 must be numbers, got {y0!r}; say which numbers are meant, e.g. float(value).")
    if values.shape != (len(points),):
        raise ValueError(f"y0 must have shape ({len(points)},), one value per row of x0, got {values.shape}.")
    return points, values


def earlier_trials(points: Array, values: Array | None) -> Iterator[Fields]:  # (k, d), (k,)
    """The evaluations of `x0` and `y0`: failures where a value is NaN or infinite."""
    for x, value in zip(points, [] if values is None else values.tolist(), strict=values is not None):
        if math.isfinite(value):
            yield {"x": x, "value": value, "status": "done"}
        else:
            yield {"x": x, "status": "failed", "reason": f"y0 was {value}"}


def checked_trials(trials: Iterable[Trial], frame: Box | Frame) -> list[Fields]:
    """Closed trials of an earlier run at points of this one's space."""
    if isinstance(trials, str | bytes) or not isinstance(trials, Iterable):
        raise TypeError(f"trials must be a list of cylbo.Trial, got {trials!r}.")
    found: list[Fields] = []
    for i, trial in enumerate(trials):
        if not isinstance(trial, Trial):
            raise TypeError(
                f"trials must be a list of cylbo.Trial, got {trial!r} at {i}; pass points and values as x0 and y0."
            )
        if trial.status not in ("done", "failed"):
            raise ValueError(
                f"trials must be done or failed, got trial {trial.id}, which is {trial.status}; leave it out, as in "
                "[t for t in trials if t.status in ('done', 'failed')]."
            )
        found.append(_fields(trial, frame, f"trials[{i}]"))
    told = [(i, len(each["constraints"])) for i, each in enumerate(found) if each["constraints"]]
    for i, count in told:
        if count != told[0][1]:
            raise ValueError(
                f"trials must have as many constraints each, got {told[0][1]} in trials[{told[0][0]}] and {count} in "
                f"trials[{i}]; leave out those of another problem."
            )
    return found


def _fields(trial: Trial, frame: Box | Frame, name: str) -> Fields:
    if isinstance(frame, Box):
        x = frame.checked_point(trial.x, name)
    elif trial.params is None:
        raise ValueError(f"{name} must be of a cylbo.Space, got one of plain bounds; add() it with a dict instead.")
    else:
        # Parameters that are new since then had their default
        x = frame.checked_point(frame.space.defaults | trial.params, name)
    # A trial may have been made by hand, or changed with dataclasses.replace
    fields = {"x": x, "status": trial.status, "metadata": checked_metadata(trial.metadata)}
    if trial.status == "failed":
        return {**fields, "reason": spelled(trial.reason), "constraints": ()}
    constraints = History().checked_constraints(trial.constraints, trial)
    std = History().checked_std(trial.std, trial)
    return {**fields, "value": checked_value(trial.value, trial), "std": std, "constraints": constraints}
