"""Trials and the state of a search as the cells of a file, and back."""

import json
import math
from typing import Any

import numpy as np

from cylbo.model.beliefs import Form
from cylbo.numerics.slice_sampler import Chain
from cylbo.record.suggestion import Suggestion
from cylbo.record.trial import Trial
from cylbo.search.learn import Fits
from cylbo.search.memory import Memory
from cylbo.space.box import Box
from cylbo.space.named import Frame
from cylbo.types import Array

__all__ = [
    "FORMAT",
    "Header",
    "bits_of",
    "memory_from_json",
    "memory_to_json",
    "point_of",
    "row_of",
    "space_of",
    "trial_of",
]


Header = dict[str, Any]  # what a run is a function of, as JSON


def row_of(trial: Trial) -> tuple[object, ...]:
    """A trial as the cells of a row."""
    value = trial.value if trial.status == "done" else None
    std = None if math.isnan(trial.std) else trial.std
    constraints, info, metadata = map(json.dumps, (trial.constraints, trial.suggestion.to_json(), trial.metadata))
    about = (trial.status, trial.origin, trial.seconds, trial.reason)
    return trial.id, bits_of(trial.x), value, *about, std, constraints, info, metadata


def bits_of(x: Array) -> bytes:
    """Not decimals; the same on every machine."""
    return x.astype("<f8").tobytes()


def space_of(header: Header) -> Box | Frame:
    """The search space, of a header that has all that the run is a function of."""
    stored, points, values, seed = header["space"], header["x0"], header["y0"], header["seed"]
    space = Frame.from_json(stored) if "parameters" in stored else Box.from_json(stored)
    if (
        "method" not in header
        or not isinstance(header["noisy"], bool | None)
        or header["direction"] not in ("minimize", "maximize")
        or not isinstance(points, list)
        or len(stored["center"]) != space.dim
        or (values is not None and len(values) != len(points))
        or not (isinstance(seed, int) and seed >= 0)
    ):
        raise ValueError("its header is not what it should be")
    for x in points:
        _check_names(_numbers(x, space.dim), space)
    return space


def trial_of(i: int, row: tuple[Any, ...], space: Box | Frame) -> Trial:
    """The trial of row i; raises ValueError or TypeError if the row is none."""
    number, x, value, status, origin, seconds, reason, std, constraints, info, metadata = row
    told, about, extra = json.loads(constraints), json.loads(info), json.loads(metadata)
    point = point_of(x, space)
    known = isinstance(value, float) and math.isfinite(value)
    if not (
        number == i
        and (known if status == "done" else status in ("open", "failed", "cancelled") and value is None)
        and (type(origin), type(seconds), type(reason)) == (str, float, str)
        and (std is None or (isinstance(std, float) and math.isfinite(std) and std >= 0.0))
        and isinstance(told, list)
        and all(isinstance(c, float) and math.isfinite(c) for c in told)
        and isinstance(about, dict)
        and isinstance(extra, dict)
    ):
        raise ValueError(f"trial {i} is not what it should be")
    return Trial(
        i,
        point,
        math.nan if value is None else value,
        status,
        origin,
        seconds,
        reason,
        std=math.nan if std is None else std,
        constraints=tuple(told),
        suggestion=Suggestion.from_json(about),
        metadata=extra,
        to_params=space.params,
    )


def point_of(bits: bytes, space: Box | Frame) -> Array:  # -> (d,)
    """A point in user units; raises if it is none of the space's."""
    point = _numbers(np.frombuffer(bits, "<f8").astype(np.float64), space.dim)
    _check_names(point, space)
    point.flags.writeable = False
    return point


def _check_names(x: Array, space: Box | Frame) -> None:  # (p,)
    """Raises if a choice is none of the space's."""
    if space.params is not None:
        space.params(x)


def memory_to_json(memory: Memory) -> dict[str, Any]:
    """What the next suggestion begins from, as JSON."""
    state = None if memory.state is None else _state_to_json(memory.state)
    limits = {name: _state_to_json(fits) for name, fits in memory.limits.items()}
    return {"state": state, "limits": limits}


def memory_from_json(stored: dict[str, Any], dim: int) -> Memory:
    """The same in d = `dim` dimensions from JSON; raises ValueError or LookupError if it is none."""
    limits = {name: _state_from_json(fits, dim) for name, fits in stored["limits"].items()}
    if not all(isinstance(fits, Fits) for fits in limits.values()):
        raise ValueError("its memory of limits is not what it should be")
    state = None if stored["state"] is None else _state_from_json(stored["state"], dim)
    return Memory(state, limits)  # type: ignore[arg-type]


def _state_to_json(state: Chain | Fits) -> dict[str, Any]:
    if isinstance(state, Chain):
        return {"kind": "chain", "theta": state.theta.tolist(), "widths": state.widths.tolist()}
    thetas = [[[form.stretched, form.effects], theta.tolist()] for form, theta in state.thetas.items()]
    chosen = [state.form.stretched, state.form.effects]
    return {
        "kind": "fits",
        "thetas": thetas,
        "form": chosen,
        "chosen_at": state.chosen_at,
        "fitted_at": state.fitted_at,
        "told_noise": state.told_noise,
    }


def _state_from_json(stored: dict[str, Any], dim: int) -> Chain | Fits:
    if stored["kind"] == "chain":
        theta = _numbers(stored["theta"], len(stored["theta"]))
        return Chain(theta, _numbers(stored["widths"], len(theta)))
    if stored["kind"] != "fits":
        raise ValueError(f"its state is of the unknown kind {stored['kind']!r}")
    chosen_at, fitted_at, told_noise = (stored[name] for name in ("chosen_at", "fitted_at", "told_noise"))
    if (type(chosen_at), type(fitted_at), type(told_noise)) != (int, int, bool):
        raise ValueError("its state is not what it should be")
    forms = {Form(*map(bool, form)): theta for form, theta in stored["thetas"]}
    thetas = {form: _numbers(theta, form.size(dim) + told_noise) for form, theta in forms.items()}
    form = Form(*map(bool, stored["form"]))
    if form not in thetas:
        raise ValueError("its state lacks the form of the model that was chosen")
    return Fits(thetas, form, chosen_at, fitted_at, told_noise)


def _numbers(stored: Any, size: int) -> Array:  # noqa: ANN401 - as JSON has it; -> (size,)
    array = np.array(stored, np.float64)
    if array.shape != (size,) or not np.isfinite(array).all():
        raise ValueError("its numbers are not what they should be")
    return array


FORMAT = 3
