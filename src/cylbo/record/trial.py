"""Trials, and the ordered record of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Never, Self

import numpy as np

from cylbo.record.suggestion import Suggestion
from cylbo.rendering import Point, Rows, html_table, one_line, point_rows, shown, shown_point, spelled
from cylbo.types import Array, Status

__all__ = ["ELSEWHERE", "Trial", "spelled"]


# Origins of evaluations that the run did not ask for: they cost no budget
ELSEWHERE = ("told", "added")

# Characters that are shown
LONGEST_REASON = 60
# What stands in quotes where a trial is shown as code
TEXTS = ("status", "reason", "origin")


class _ReadOnly(dict[str, Any]):
    """A dict that refuses every change and, unlike a `MappingProxyType`, can be pickled."""

    def _refuse(self, *_: object, **__: object) -> Never:
        raise TypeError("metadata of a trial cannot be changed; work on a copy, such as dict(trial.metadata).")

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
            it was suggested, as listed in `search/suggest.py`.
        seconds: The time that was spent on suggesting the point.
        reason: Why the evaluation failed, in the words that `fail` was given; of an open trial, why
            the program that evaluated it came to no end.
        std: The standard deviation of the noise in the value; it is NaN if it was not told.
        constraints: The numbers that were told with the value. A constraint is kept where its
            number is <= 0.
        suggestion: What the search said of the point, a `cylbo.Suggestion`; `Optimizer.health` sums
            it up.
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
    suggestion: Suggestion = field(default_factory=Suggestion)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    to_params: Callable[[Array], dict[str, Any]] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "metadata", _read_only(self.metadata))

    def __getattr__(self, name: str) -> Never:
        if name == "info":
            raise AttributeError("Trial.info is called Trial.suggestion since 0.2: write trial.suggestion.predicted.")
        raise AttributeError(f"'Trial' object has no attribute {name!r}")

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
