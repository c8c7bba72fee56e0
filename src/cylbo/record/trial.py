"""Trials, and the ordered record of them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any, Literal, Never, Self

import numpy as np

from cylbo.errors import TrialClosedError, UnknownTrialError
from cylbo.rendering import Point, Rows, html_table, one_line, point_rows, shown, shown_point, spelled
from cylbo.space.checks import as_float, as_scalar, is_integer, is_real
from cylbo.space.geometry import Array

__all__ = ["ELSEWHERE", "Direction", "History", "NotFiniteError", "Trial", "checked_value", "spelled"]

Status = Literal["open", "done", "failed", "cancelled"]
Direction = Literal["minimize", "maximize"]

# Origins of evaluations that the run did not ask for: they cost no budget
ELSEWHERE = ("told", "added")

# Characters that are shown
LONGEST_REASON = 60
# What stands in quotes where a trial is shown as code
TEXTS = ("status", "reason", "origin")


class NotFiniteError(ValueError):
    """A number, but NaN or infinite."""


class _ReadOnly(dict[str, Any]):
    """A dict that refuses every change and, unlike a `MappingProxyType`, can be pickled."""

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
    """One evaluation, as it was at one moment.

    A trial is a snapshot that never changes. When its outcome arrives, the optimizer replaces it by
    a new one with the same id: `tell` and `fail` return the newest, and
    `optimizer.trials[trial.id]` is the newest too.

    Attributes:
        id: The trial's place in `optimizer.trials`, counted from 0.
        x: The point in the units of the bounds, a read-only array of shape (d,). In a `cylbo.Space`
            it has a number for each scalar parameter and array entry; a category is the index of
            its choice.
        value: The value that was told; it is NaN as long as there is none.
        status: "open" until the outcome arrives, then "done" or "failed"; "cancelled" if the trial was
            withdrawn, from which the model learns nothing.
        origin: How the point came about: "center" for the centre, "given" for a point of `x0`,
            "enqueued" for one that `enqueue` was given, "told" for an evaluation that the run began
            with (`x0` and `y0`, `trials`), "added" for one that nobody asked for; other words say how
            it was suggested, as listed in `suggest.py`.
        seconds: The time that was spent on suggesting the point.
        reason: Why the evaluation failed, in the words that `fail` was given; of an open trial, why
            the program that evaluated it came to no end.
        std: The standard deviation of the noise in the value; it is NaN if it was not told.
        constraints: The numbers that were told with the value. A constraint is kept where its
            number is <= 0.
        info: What the suggestion was made of, a read-only dict of numbers; `Optimizer.health` sums
            them up.
        metadata: What the user keeps with the trial, a read-only dict of JSON values.
        to_params: The function that gives `x` its names; it is None in a box without names.

    """

    id: int
    x: Array
    value: float = math.nan
    status: Status = "open"
    origin: str = "model"
    seconds: float = 0.0
    reason: str = ""
    std: float = math.nan
    constraints: tuple[float, ...] = ()
    info: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    to_params: Callable[[Array], dict[str, Any]] | None = None

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
        name, point = self._named_point
        facts = dict(self._facts())
        # The value already says that the trial is done
        if self.status == "done":
            del facts["status"]
        texts = [f"{k}={text!r}" if k in TEXTS else f"{k}={text}" for k, text in facts.items()]
        return f"Trial({', '.join([*texts[:2], f'{name}={shown_point(point)}', *texts[2:]])})"

    def _repr_html_(self) -> str:
        name, point = self._named_point
        # The point has a table of its own, because its parameters may have the names of fields
        where = f"trial.{name}"
        parameters = html_table(point_rows(point, where), caption=where)
        return f"<div>{html_table(self._facts())}{parameters}</div>"

    @property
    def _named_point(self) -> tuple[str, Point]:
        """The attribute that people read the point from, and the point itself."""
        params = self.params
        return ("x", self.x) if params is None else ("params", params)

    def _facts(self) -> Rows:
        """What there is to say besides the point; fields that say nothing yet are left out."""
        rows = [("id", str(self.id)), ("status", self.status)]
        if self.status == "done":
            rows.append(("value", shown(self.value)))
        if not math.isnan(self.std):
            rows.append(("std", shown(self.std)))
        if self.constraints:
            rows.append(("constraints", shown(np.array(self.constraints))))
        if self.reason:
            rows.append(("reason", one_line(self.reason, LONGEST_REASON)))
        if self.metadata:
            rows.append(("metadata", one_line(repr(self.metadata), LONGEST_REASON)))
        return [*rows, ("origin", one_line(self.origin, LONGEST_REASON))]


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
