"""Trials, and the ordered record of them."""

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, Literal, Never, Self

import numpy as np

from cylbo.checks import as_float, as_scalar, is_integer, is_real
from cylbo.errors import TrialClosedError, UnknownTrialError
from cylbo.geometry import Array

__all__ = ["Direction", "History", "NotFiniteError", "Trial", "checked_value", "spelled"]

Status = Literal["open", "done", "failed", "cancelled"]
Direction = Literal["minimize", "maximize"]


class NotFiniteError(ValueError):
    """A number, but NaN or infinite."""


class _ReadOnly(dict[str, Any]):
    """A dict that stays as it is, also pickled, which a `MappingProxyType` cannot be."""

    def _refuse(self, *_: object, **__: object) -> Never:
        raise TypeError("what a trial says of itself cannot be changed; work on dict(trial.info).")

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[Self], tuple[dict[str, Any]]]:
        return type(self), (dict(self),)


class _ReadOnlyList(list[Any]):
    """The same for a list."""

    _refuse = _ReadOnly._refuse
    __setitem__ = __delitem__ = __iadd__ = __imul__ = append = clear = extend = insert = _refuse
    pop = remove = reverse = sort = _refuse

    def __reduce__(self) -> tuple[type[Self], tuple[list[Any]]]:
        return type(self), (list(self),)


def _read_only(json: Any) -> Any:  # noqa: ANN401 - any JSON value
    """The same JSON value, whose dicts and lists stay as they are."""
    if isinstance(json, Mapping):
        return _ReadOnly({name: _read_only(value) for name, value in json.items()})
    return _ReadOnlyList(map(_read_only, json)) if isinstance(json, list | tuple) else json


@dataclass(frozen=True, eq=False)
class Trial:
    """One evaluation: a snapshot, replaced by a new one in the history when its value arrives."""

    id: int
    x: Array  # (d,) in user units, read-only
    value: float = math.nan
    status: Status = "open"
    origin: str = "model"  # how the point came about: "center", "given" (x0), "told" (x0, y0) or a rung of `suggest.py`
    seconds: float = 0.0  # spent on suggesting it
    reason: str = ""  # of a failure
    std: float = math.nan  # standard deviation of the value's noise, if it was told
    constraints: tuple[float, ...] = ()  # told with the value; met where <= 0
    info: Mapping[str, Any] = field(default_factory=dict)  # of the suggestion, read-only: see `Optimizer.health`
    metadata: Mapping[str, Any] = field(default_factory=dict)  # what the user wants to keep with it, JSON, read-only
    to_params: Callable[[Array], dict[str, Any]] | None = None  # what gives x its names

    def __post_init__(self) -> None:
        object.__setattr__(self, "info", _ReadOnly(self.info))
        object.__setattr__(self, "metadata", _read_only(self.metadata))

    @property
    def params(self) -> dict[str, Any] | None:
        """The point by name, a new dict every time: do with it what you like. None in a box without names."""
        return None if self.to_params is None else self.to_params(self.x)

    @property
    def feasible(self) -> bool:
        """Whether there is a value and every constraint is met."""
        return self.status == "done" and all(c <= 0.0 for c in self.constraints)

    def __repr__(self) -> str:
        shown = f"value={self.value:.6g}" if self.status == "done" else f"status={self.status!r}"
        return f"Trial(id={self.id}, {shown}, x=<{len(self.x)} parameters>)"


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

    def copy(self) -> "History":
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
        if isinstance(constraints, str | bytes | Mapping | Set) or not isinstance(constraints, Iterable):
            raise TypeError(f"constraints must be a list of numbers, got {constraints!r} for trial {trial.id}.")
        hint = f"for trial {trial.id}; report an evaluation that gave nothing with fail(trial, reason)."
        numbers_told = tuple(_checked_number(c, f"constraints[{i}]", hint) for i, c in enumerate(constraints))
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


def spelled(thing: object, spell: Callable[[object], str] = str) -> str:
    """Anything as text that can be stored and printed, whatever its own way of saying it does."""
    try:
        text = spell(thing)
    except Exception:  # an integer beyond 4300 digits, or an object of the user's
        text = f"{type(thing).__name__} that cannot be shown"
    return text.encode(errors="backslashreplace").decode()  # half characters, as in names of files that are not UTF-8


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
