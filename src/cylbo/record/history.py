"""The ordered record of trials, and the checks of what is told."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Set

import numpy as np

from cylbo.errors import TrialClosedError, UnknownTrialError
from cylbo.record.trial import Trial
from cylbo.rendering import spelled
from cylbo.space.checks import as_float, as_scalar, is_integer, is_real
from cylbo.types import Array, Direction, Status

__all__ = ["History", "NotFiniteError", "checked_value"]


class NotFiniteError(ValueError):
    """A number, but NaN or infinite."""


class History:
    """All trials in the order of their ids."""

    def __init__(self, trials: Iterable[Trial] = (), direction: Direction = "minimize") -> None:
        """Values are kept as they were told; `sign` times a value is what is to be small."""
        self._trials = list(trials)
        self.direction = direction
        self.sign = -1.0 if direction == "maximize" else 1.0

    def __len__(self) -> int:
        return len(self._trials)

    def __getitem__(self, trial: int | Trial) -> Trial:
        """The newest snapshot of a trial, by id or by an older snapshot."""
        i = trial.id if isinstance(trial, Trial) else trial
        if not is_integer(i) or not 0 <= i < len(self):
            known = f"ids 0 to {len(self) - 1}" if len(self) else "no trials yet"
            raise UnknownTrialError(f"expected a trial of this optimizer, which has {known}; got {spelled(i, repr)}.")
        found = self._trials[int(i)]
        if isinstance(trial, Trial) and not np.array_equal(trial.x, found.x):
            raise UnknownTrialError(f"trial {i} comes from another optimizer; tell it to the one that asked it.")
        return found

    def new(self, x: Array, **fields: object) -> Trial:
        """A trial with the next id, not yet kept."""
        x = np.array(x)
        x.flags.writeable = False
        return Trial(len(self), x, **fields)  # type: ignore[arg-type]

    def closed(self, trial: int | Trial, **fields: object) -> Trial:
        """The trial with its outcome, not yet kept; only an open one may be closed."""
        found = self[trial]
        if found.status != "open":
            was = {"done": f"told ({found.value})", "failed": f"reported as failed ({found.reason!r})"}
            cure = "ask() for a new one"
            if found.status == "cancelled":
                cure = "add() its point with the value that it gave after all, or ask() for a new one"
            raise TrialClosedError(f"trial {found.id} was already {was.get(found.status, found.status)}; {cure}.")
        # An open trial may hold the reason why it is still open
        return dataclasses.replace(found, **{"reason": "", **fields})  # type: ignore[arg-type]

    def copy(self) -> History:
        """The same record, to which nothing is added."""
        return History(self._trials, self.direction)

    def keep(self, trial: Trial) -> Trial:
        """Take in a new trial, or the outcome of one."""
        self._trials[trial.id : trial.id + 1] = [trial]
        return trial

    def of(self, status: Status) -> list[Trial]:
        """The trials of that status, by id."""
        return [trial for trial in self._trials if trial.status == status]

    @property
    def all(self) -> list[Trial]:
        """Every trial, by id."""
        return list(self._trials)

    @property
    def best(self) -> Trial | None:
        """The feasible trial with the best value, the earliest of equals; None before there is one."""
        feasible = (trial for trial in self._trials if trial.feasible)
        return min(feasible, key=lambda trial: self.sign * trial.value, default=None)

    def checked_std(self, std: object, trial: Trial) -> float:
        """A standard deviation of noise; NaN if it is not known, as that of a single replicate."""
        if std is None:
            return math.nan
        hint = f"for trial {trial.id}; leave it out where it is not known."
        number = _checked_number(std, "std", hint, or_nan=True)
        if number < 0.0:
            raise ValueError(f"expected std >= 0, got {number} for trial {trial.id}.")
        return number

    def checked_constraints(self, constraints: object, trial: Trial) -> tuple[float, ...]:
        """As many numbers as every trial of this run has that was told."""
        if constraints is None:
            constraints = ()
        is_scalar = isinstance(constraints, np.ndarray) and constraints.ndim == 0
        if is_scalar or isinstance(constraints, str | bytes | Mapping | Set) or not isinstance(constraints, Iterable):
            raise TypeError(f"constraints must be a list of numbers, got {constraints!r} for trial {trial.id}.")
        hint = f"for trial {trial.id}; report an evaluation that gave nothing with fail(trial, reason)."
        told = list(constraints)
        for i, c in enumerate(told):
            if isinstance(as_scalar(c), bool):
                raise TypeError(
                    f"expected constraints[{i}] to be a number that is <= 0 where the constraint is met, such as "
                    f"x[0] - 1 for x[0] <= 1, got {as_scalar(c)} for trial {trial.id}."
                )
        numbers_told = tuple(_checked_number(c, f"constraints[{i}]", hint) for i, c in enumerate(told))
        for earlier in self.of("done"):
            # x0 and y0 say nothing of constraints
            if earlier.origin != "told" or earlier.constraints:
                if len(earlier.constraints) != len(numbers_told):
                    raise ValueError(
                        f"expected {len(earlier.constraints)} constraints as with trial {earlier.id}, got "
                        f"{len(numbers_told)} for trial {trial.id}; tell the same ones with every value."
                    )
                break
        return numbers_told


def checked_value(value: object, trial: Trial) -> float:
    """`value` as a finite float, or an error that says what to do instead."""
    value = as_scalar(value)
    if value is None:
        raise TypeError(
            f"expected one real number, got None for trial {trial.id}; did your function return a "
            "number? If the evaluation gave nothing, call fail(trial, reason), or return NaN to "
            "minimize."
        )
    if isinstance(value, bool):
        got = f"{value} for trial {trial.id}"
        cure = "say which number is meant, e.g. float(value)"
        raise TypeError(f"expected one real number, got {got}; {cure}.")
    hint = f"for trial {trial.id}; report an evaluation that gave nothing with fail(trial, reason)."
    return _checked_number(value, "", hint)


def _checked_number(value: object, name: str, hint: str, *, or_nan: bool = False) -> float:
    """A finite number, or an array of one; NaN too where it says that nothing is known."""
    expected = f"expected {name} to be" if name else "expected"
    value = as_scalar(value)
    if not is_real(value):
        shape = getattr(value, "shape", None)
        shown = f"of shape {tuple(shape)}" if isinstance(shape, tuple) and shape else f"{value!r}"
        raise TypeError(f"{expected} one real number, got {type(value).__name__} {shown} {hint}")
    number = as_float(value)
    if not math.isfinite(number) and not (or_nan and math.isnan(number)):
        raise NotFiniteError(f"{expected} a finite number, got {number} {hint}")
    return number
