"""Search spaces of named parameters: real numbers, integers, categories, alone or in arrays.

    u (p,) a point in user units, one number per scalar; a category is its index
    z (d,) the same point as the model sees it, in [-1, 1]^d: a scalar is one coordinate, on its own scale; three or
           more categories are one coordinate each, 1 for the one that is meant and -1 for the others

The model sees what will be evaluated: an integer lies in the middle of its cell, never between two of them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from cylbo.arguments import checked_arguments
from cylbo.rendering import shown
from cylbo.space.checks import FIXED, are_apart, as_float, as_integer, checked_flag, is_real
from cylbo.types import Array

__all__ = ["Integer", "Parameter", "Real"]

LARGEST_INTEGER = 2**53  # float64 tells integers apart up to here
LARGEST_SIZE = 10_000_000  # numbers in an array; far less is practical, far more would not fit into memory


Value = Any  # a number, a category or an array of numbers


class Parameter(ABC):
    """One entry of a point: a scalar or an array of them.

    Its `default` is the user's current setting: where the search begins, unless a centre is given, and what the trials
    of a stored run get that began without the parameter.
    """

    default: Array | None = None  # (p,)
    shape: tuple[int, ...] = ()
    log: bool = False
    width: int  # coordinates in the model, d
    levels: float  # different values of one scalar, infinity for real numbers

    @property
    def size(self) -> int:
        """The number of scalars, p."""
        return math.prod(self.shape)

    @abstractmethod
    def encode(self, u: Array) -> Array:  # (n, p) -> (n, d)
        """User units as the model sees them."""

    @abstractmethod
    def decode(self, z: Array) -> Array:  # (n, d) -> (n, p)
        """The nearest values of the parameter."""

    @abstractmethod
    def checked(self, value: Value, name: str) -> Array:  # -> (p,)
        """A value as numbers; ValueError or TypeError if it is none of this parameter's."""

    @abstractmethod
    def value(self, u: Array) -> Value:  # (p,)
        """Numbers as a value: of plain Python for a scalar, a NumPy array otherwise."""

    @abstractmethod
    def redrawn(self, u: Array, rng: Generator) -> Array:  # (n, p) -> (n, p)
        """Other values of discrete scalars, near or anywhere; real ones as they are."""

    def listed(self) -> list[float]:
        """All values of one scalar, as numbers; none if they cannot be listed."""
        return []

    @property
    def middle(self) -> Array:  # (p,)
        """The default; without one the middle of the range, or the first choice."""
        return self.decode(np.zeros((1, self.width)))[0] if self.default is None else self.default

    @abstractmethod
    def contains(self, old: Self) -> bool:
        """Whether all values of an older parameter, of this kind, shape and scale, are values of this one."""

    def carried_over(self, old: Self, u: Array) -> Array:  # (n, p) -> (n, p)
        """Values of an older parameter that this one contains, as numbers of this one."""
        return u

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """What makes two parameters the same."""

    @property
    def _given_default(self) -> dict[str, Value]:
        """The default as JSON and people write it, by its name; nothing if there is none."""
        if self.default is None:
            return {}
        entries = np.asarray(self.value(self.default), object)
        same = all(entry == entries.flat[0] for entry in entries.flat)  # one number for a whole array will do
        return {"default": entries.flat[0] if same else entries.tolist()}

    @property
    @abstractmethod
    def _shown_values(self) -> str:
        """The range or the choices, for people."""

    @property
    def _shown_default(self) -> str:
        return "".join(f", {name}={value!r}" for name, value in self._given_default.items())


class _Number(Parameter):
    """What real numbers and integers share: a range, a scale, a shape."""

    def __init__(self, low: float, high: float, *, log: bool, shape: int | Sequence[int]) -> None:
        kind = type(self).__name__
        for end, given in (("low", low), ("high", high)):
            if not is_real(given) or not math.isfinite(as_float(given)):
                raise ValueError(f"{kind} expected a finite number as {end}, got {given!r}.")
        if not low < high:
            cure = FIXED if low == high else "swap them"
            raise ValueError(f"{kind} expected low < high, got ({low}, {high}); {cure}.")
        self.log = checked_flag(log, f"log of {kind}")
        if self.log and not low > 0:
            raise ValueError(
                f"{kind} on a log scale expected low > 0, got {low}; shift the parameter or drop log=True."
            )
        each = shape if isinstance(shape, Sequence) else [shape]
        sizes = tuple(as_integer(k) or 0 for k in each)
        if not all(k > 0 for k in sizes):
            raise ValueError(f"{kind} expected a shape of positive integers, got {shape!r}.")
        if math.prod(sizes) > LARGEST_SIZE:
            raise ValueError(f"{kind} expected at most {LARGEST_SIZE} numbers in an array, got a shape of {shape!r}.")
        self.low, self.high, self.shape = low, high, sizes
        self.width = self.size

    def __repr__(self) -> str:
        extras = ", log=True" * self.log + f", shape={self.shape}" * bool(self.shape) + self._shown_default
        return f"{type(self).__name__}({self.low}, {self.high}{extras})"

    @property
    def _shown_values(self) -> str:
        return f"{shown(self.low)} to {shown(self.high)}"

    @property
    def _ends(self) -> tuple[float, float]:
        """What -1 and 1 stand for, before any logarithm."""
        return self.low, self.high

    def encode(self, u: Array) -> Array:  # (n, p) -> (n, d)
        """Affine, of the logarithm if the scale is."""
        low, high = (math.log(end) for end in self._ends) if self.log else self._ends
        return np.asarray(2.0 * (((np.log(u) if self.log else u) - low) / (high - low)) - 1.0)

    def decode(self, z: Array) -> Array:  # (n, d) -> (n, p)
        """The inverse, within the range."""
        low, high = (math.log(end) for end in self._ends) if self.log else self._ends
        u = low + 0.5 * (z + 1.0) * (high - low)
        with np.errstate(over="ignore", under="ignore"):  # next to the largest and the smallest number there is
            return np.clip(np.exp(u) if self.log else u, self.low, self.high)

    def checked(self, value: Value, name: str) -> Array:  # -> (p,)
        """Numbers within the range, in the right shape."""
        entries = np.asarray(value, object)  # where True is not 1, and lists of lists may be ragged
        if (
            entries.shape != self.shape
            or np.ma.is_masked(value)
            or any(isinstance(entry, bool | np.bool_) for entry in entries.flat)
            or (array := np.asarray(value)).dtype.kind not in "iuf"
        ):
            what = f"an array of numbers of shape {self.shape}" if self.shape else "one number"
            raise TypeError(f"{name} must be {what}, got {value!r}.")
        found = array.astype(np.float64).ravel()
        if not ((found >= self.low) & (found <= self.high)).all():
            raise ValueError(f"{name} must lie within ({self.low}, {self.high}), got {value!r}.")
        return found

    def _checked_default(self, default: ArrayLike | None) -> Array | None:  # -> (p,)
        if default is None:
            return None
        for_all = self.shape and is_real(default)
        return self.checked(np.full(self.shape, default) if for_all else default, f"default of {type(self).__name__}")

    def contains(self, old: Self) -> bool:
        """Whether the range does."""
        return bool(self.low <= old.low and old.high <= self.high)

    def to_json(self) -> dict[str, Any]:
        """The range, the scale, the shape and the default."""
        kind, shape = type(self).__name__.lower(), list(self.shape)
        return {
            "kind": kind,
            "low": self.low,
            "high": self.high,
            "log": self.log,
            "shape": shape,
            **self._given_default,
        }


class Real(_Number):
    """A real number between two bounds, or an array of them; `log=True` for one whose order of magnitude matters."""

    levels = math.inf

    @checked_arguments()
    def __init__(
        self,
        low: float,
        high: float,
        *,
        log: bool = False,
        shape: int | Sequence[int] = (),
        default: ArrayLike | None = None,
    ) -> None:
        """Check the range, and the default: an array of the shape, or one number for all its entries."""
        super().__init__(low, high, log=log, shape=shape)
        self.low, self.high = float(low), float(high)
        if not (math.isfinite(self.high - self.low) and are_apart(self.low, self.high)):
            raise ValueError(f"Real expected bounds that can be told apart and subtracted, got ({low}, {high}).")
        self.default = self._checked_default(default)

    def value(self, u: Array) -> Value:  # (p,)
        """A float, or an array of them."""
        return u.reshape(self.shape).copy() if self.shape else float(u[0])

    def redrawn(self, u: Array, rng: Generator) -> Array:  # (n, p) -> (n, p)
        """As they are."""
        return u


class Integer(_Number):
    """An integer between two bounds, both included, or an array of them."""

    @checked_arguments()
    def __init__(
        self,
        low: int,
        high: int,
        *,
        log: bool = False,
        shape: int | Sequence[int] = (),
        default: ArrayLike | None = None,
    ) -> None:
        """Check the range, and the default: an array of the shape, or one integer for all its entries."""
        first, last = as_integer(low), as_integer(high)
        if first is None or last is None or max(abs(first), abs(last)) > LARGEST_INTEGER:
            raise ValueError(f"Integer expected integers up to 2^53 as bounds, got ({low!r}, {high!r}).")
        super().__init__(first, last, log=log, shape=shape)
        self.levels = self.high - self.low + 1
        self.default = self._checked_default(default)

    @property
    def _ends(self) -> tuple[float, float]:
        return self.low - 0.5, self.high + 0.5  # every integer has a cell of its own

    def decode(self, z: Array) -> Array:  # (n, d) -> (n, p)
        """The integer in whose cell the point lies."""
        return np.clip(np.round(super().decode(z)), self.low, self.high)

    def checked(self, value: Value, name: str) -> Array:  # -> (p,)
        """Whole numbers within the range."""
        u = super().checked(value, name)
        if (u != np.round(u)).any():
            raise ValueError(f"{name} must be a whole number, got {value!r}.")
        return u

    def value(self, u: Array) -> Value:  # (p,)
        """An int, or an array of them."""
        return u.reshape(self.shape).astype(np.int64) if self.shape else int(u[0])

    def listed(self) -> list[float]:
        """All integers."""
        return [float(k) for k in range(int(self.low), int(self.high) + 1)]

    def redrawn(self, u: Array, rng: Generator) -> Array:  # (n, p) -> (n, p)
        """One up or down, or any other on the scale of the parameter."""
        up = (rng.random(u.shape) < 0.5) & (u < self.high) | (u == self.low)
        anywhere = self.decode(rng.uniform(-1.0, 1.0, u.shape))
        near = (rng.random(u.shape) < 0.5) | (anywhere == u)
        return np.where(near, np.where(up, u + 1.0, u - 1.0), anywhere)
