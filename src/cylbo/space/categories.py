"""Parameters with choices that have no order: categories and booleans."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import Any, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from cylbo.arguments import checked_arguments
from cylbo.rendering import shown_list
from cylbo.space.checks import FIXED
from cylbo.space.parameters import Parameter, Value
from cylbo.types import Array

__all__ = ["PLAIN", "Boolean", "Categorical"]


# What JSON gives back as it was
PLAIN = (str, int, float, bool, type(None))


def _in_one_list(given: Sequence[object]) -> str | None:
    """What to do with choices that were given one by one."""
    if type(given[0]) not in PLAIN:
        return None
    return f"put the choices in one list: Categorical({list(given)})"


class Categorical(Parameter):
    """One of several choices without an order: strings, numbers, True, False or None."""

    @checked_arguments(_in_one_list)
    def __init__(
        self,
        choices: Sequence[str | float | bool | None] | NDArray[Any],
        *,
        default: str | float | bool | EllipsisType | None = ...,
    ) -> None:
        """Check that there are at least two, all different and all of plain Python, and that the default is one.

        The entries of a one-dimensional array, or of a pandas Series, become plain Python.
        Without a default it is ..., because None may be a choice; where it is not, None is no default either.
        """
        given: Any = choices
        is_array = getattr(given, "ndim", None) == 1 and hasattr(given, "tolist")
        if is_array and not np.ma.is_masked(given):
            given = given.tolist()
        # Sets have no order to keep
        is_list = isinstance(given, Sequence) and not isinstance(given, str | bytes)
        self.choices = tuple(given) if is_list else ()
        if len(self.choices) < 2:
            cure = f"; {FIXED}" if self.choices else ""
            raise ValueError(f"Categorical expected at least two choices in a list, got {choices!r}{cure}.")
        for i, choice in enumerate(self.choices):
            if type(choice) not in PLAIN:
                raise TypeError(
                    f"Categorical expected strings, numbers, booleans or None of plain Python, got {choice!r}; give "
                    "things names and look them up in your function."
                )
            if choice != choice:
                raise ValueError("Categorical expected choices that can be told apart, got NaN.")
            if choice in self.choices[:i]:
                raise ValueError(f"Categorical expected different choices, got {choice!r} twice.")
        self.levels = len(self.choices)
        self.width = 1 if len(self.choices) == 2 else len(self.choices)
        if default is not ... and (default is not None or None in self.choices):
            self.default = self.checked(default, f"default of {type(self).__name__}")

    def __repr__(self) -> str:
        return f"Categorical({list(self.choices)}{self._shown_default})"

    @property
    def _shown_values(self) -> str:
        return shown_list(self.choices)

    def encode(self, u: Array) -> Array:  # (n, 1) -> (n, d)
        """Corners of the cube that are equally far from one another."""
        if self.width == 1:
            return 2.0 * u - 1.0
        return np.where(u == np.arange(self.width), 1.0, -1.0)

    def decode(self, z: Array) -> Array:  # (n, d) -> (n, 1)
        """The choice of the nearest corner."""
        index = z[:, :1] > 0 if self.width == 1 else z.argmax(-1)[:, None]
        return index.astype(np.float64)

    def checked(self, value: Value, name: str) -> Array:  # -> (1,)
        """The index of a choice."""
        if isinstance(value, np.generic):  # out of an array
            value = value.item()
        for i, choice in enumerate(self.choices):
            if type(value) is type(choice) and value == choice:
                return np.array([float(i)])
        raise ValueError(f"{name} must be one of {', '.join(map(repr, self.choices))}; got {value!r}.")

    def value(self, u: Array) -> Value:  # (1,)
        """The choice itself."""
        return self.choices[int(u[0])]

    def listed(self) -> list[float]:
        """All indices."""
        return [float(i) for i in range(len(self.choices))]

    def redrawn(self, u: Array, rng: Generator) -> Array:  # (n, 1) -> (n, 1)
        """Any other choice."""
        return np.asarray((u + rng.integers(1, len(self.choices), u.shape)) % self.levels)

    def contains(self, old: Self) -> bool:
        """Whether the choices do, in any order; 1, 1.0 and True differ."""
        return {(type(choice), choice) for choice in old.choices} <= {(type(choice), choice) for choice in self.choices}

    def carried_over(self, old: Self, u: Array) -> Array:  # (n, 1) -> (n, 1)
        """Where the choices are now."""
        places = np.concatenate([self.checked(choice, "choice") for choice in old.choices])
        return np.asarray(places[u.astype(np.intp)])

    def to_json(self) -> dict[str, Any]:
        """The choices and the default."""
        return {"kind": "categorical", "choices": list(self.choices), **self._given_default}


class Boolean(Categorical):
    """False or True."""

    @checked_arguments()
    def __init__(self, *, default: bool | None = None) -> None:
        super().__init__([False, True], default=default)

    def __repr__(self) -> str:
        return f"Boolean({self._shown_default.removeprefix(', ')})"

    def checked(self, value: Value, name: str) -> Array:  # -> (1,)
        """NumPy's booleans too."""
        return super().checked(bool(value) if isinstance(value, np.bool_) else value, name)

    def to_json(self) -> dict[str, Any]:
        """The kind and the default."""
        return {"kind": "boolean", **self._given_default}
