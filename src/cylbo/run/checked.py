"""The arguments of an optimizer, checked."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cylbo.search.budget import Budget
from cylbo.search.learn import fitted
from cylbo.search.settings import Method
from cylbo.space.box import Box
from cylbo.space.checks import as_float, as_integer, is_real
from cylbo.space.named import Frame
from cylbo.space.parameters import Parameter
from cylbo.space.space import Space
from cylbo.types import Bounds, Region

__all__ = ["checked_budget", "checked_path", "checked_seed", "framed"]


def checked_path(storage: object) -> Path:
    """The path of a file; raises TypeError or ValueError for anything else."""
    if not isinstance(storage, str | os.PathLike):
        raise TypeError(f"storage must be the path of a file or None, got {storage!r}.")
    text = os.fspath(storage)
    if isinstance(text, str) and (scheme := re.match(r"[A-Za-z][A-Za-z0-9+.-]*:///?", text)):
        path = text[scheme.end() :] or "run.db"
        raise ValueError(f"storage must be the path of a file, got the URL {text!r}; write storage={path!r}.")
    return Path(text)


def framed(bounds: Bounds | Space, center: Any, region: Region) -> Box | Frame:  # noqa: ANN401 - checked there
    """The search space seen from its centre."""
    if isinstance(bounds, Mapping) or (isinstance(bounds, Sequence) and any(isinstance(b, Parameter) for b in bounds)):
        raise TypeError(
            "bounds must be (d, 2), a (low, high) per parameter, or a cylbo.Space: give other parameters names with "
            f"cylbo.Space(a=..., b=...), from a dict with cylbo.Space(**parameters); got {bounds!r}."
        )
    if not isinstance(bounds, Space):
        return Box(bounds, center, region)
    if region != "box":
        raise ValueError(f"region must be 'box' in a space of named parameters, got {region!r}.")
    return Frame(bounds, center)


def checked_budget(seconds: float | None, memory: float | None, config: Method) -> Budget:
    """What a suggestion may cost, with a method that can keep to it."""
    return Budget(
        _checked_limit("max_suggest_seconds", seconds, config),
        _checked_limit("max_memory", memory, config),
    )


def _checked_limit(name: str, value: float | None, config: Method) -> float | None:
    if value is None:
        return None
    limit = as_float(value) if is_real(value) else math.nan
    if not limit > 0.0:
        raise ValueError(f"{name} must be a positive number or None, got {value!r}.")
    if config.learn is not fitted:
        raise ValueError(
            f"{name} needs a method that fits its hyperparameters, such as 'default'; {config.name!r} samples them."
        )
    return limit


def checked_seed(seed: int | None) -> int:
    """A non-negative integer; drawn if there is none."""
    if seed is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if (number := as_integer(seed)) is None or number < 0:
        raise ValueError(f"seed must be a non-negative integer or None, got {seed!r}.")
    return number
