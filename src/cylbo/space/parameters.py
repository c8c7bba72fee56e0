"""Search spaces of named parameters: real numbers, integers, categories, alone or in arrays.

    u (p,) a point in user units, one number per scalar; a category is its index
    z (d,) the same point as the model sees it, in [-1, 1]^d: a scalar is one coordinate, on its own scale; three or
           more categories are one coordinate each, 1 for the one that is meant and -1 for the others

The model sees what will be evaluated: an integer lies in the middle of its cell, never between two of them.
"""

from __future__ import annotations

import itertools
import json
import keyword
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import EllipsisType
from typing import Any, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from cylbo.arguments import checked_arguments
from cylbo.rendering import html_table, listed, shown, shown_list, shown_name
from cylbo.space.checks import FIXED, are_apart, as_float, as_integer, checked_flag, is_real
from cylbo.space.geometry import Array

__all__ = ["Boolean", "Categorical", "Integer", "Parameter", "Real", "Space"]

LARGEST_INTEGER = 2**53  # float64 tells integers apart up to here
LARGEST_SIZE = 10_000_000  # numbers in an array; far less is practical, far more would not fit into memory
CLIMBED_LEVELS = 32  # integers with more values than these are climbed as if they were real, and rounded at the end

# What JSON gives back as it was
PLAIN = (str, int, float, bool, type(None))
# Parameters in a notebook
MOST_ROWS = 30

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


class Space:
    """Named parameters.

    ```python
    space = cylbo.Space(
        lr=cylbo.Real(1e-5, 1e-1, log=True), depth=cylbo.Integer(1, 12), act=cylbo.Categorical(["relu", "gelu"]),
        bias=cylbo.Boolean(default=True), w=cylbo.Real(-1, 1, shape=(10, 10)),
    )
    ```
    """

    def __init__(self, parameters: Mapping[str, Parameter] | None = None, /, **more: Parameter) -> None:
        """Parameters by keyword, or in a mapping if their names are no identifiers; the order is kept."""
        if parameters is not None and not isinstance(parameters, Mapping):
            raise TypeError(f"Space expected a dict of parameters by name, got {parameters!r}.")
        if twice := [name for name in more if name in (parameters or {})]:
            raise ValueError(f"Space expected every name once, got {twice} in the mapping and by keyword.")
        self.parameters = {**(parameters or {}), **more}
        if not self.parameters:
            raise ValueError("Space expected at least one parameter, got none.")
        for name, parameter in self.parameters.items():
            if not isinstance(name, str) or not isinstance(parameter, Parameter):
                raise TypeError(
                    f"Space expected a Real, Integer, Categorical or Boolean under every name, got {parameter!r} as "
                    f"{name!r}."
                )
        each = list(self.parameters.values())
        sizes, widths = [parameter.size for parameter in each], [parameter.width for parameter in each]
        self._user, self._model = _slices(sizes), _slices(widths)
        is_real = [isinstance(parameter, Real) for parameter in each]
        self._real_scalars, self._real_coordinates = np.repeat(is_real, sizes), np.repeat(is_real, widths)

    def __repr__(self) -> str:
        each = self.parameters.items()
        if all(name.isidentifier() and not keyword.iskeyword(name) for name in self.parameters):
            return listed("Space(", [f"{name}={parameter!r}" for name, parameter in each], ")")
        return listed("Space({", [f"{name!r}: {parameter!r}" for name, parameter in each], "})")

    def _repr_html_(self) -> str:
        rows = [
            (
                shown_name(name),
                type(parameter).__name__,
                parameter._shown_values,
                "log" if parameter.log else "",
                "" if parameter.default is None else shown(parameter.value(parameter.default)),
                str(parameter.shape) if parameter.shape else "",
            )
            for name, parameter in itertools.islice(self.parameters.items(), MOST_ROWS)
        ]
        more = len(self.parameters) - len(rows)
        rows += [("...", f"and {more} more", "", "", "", "")] if more else []
        return html_table(rows, ("name", "kind", "range or choices", "scale", "default", "shape"))

    def __eq__(self, other: object) -> bool:  # as text, where 1, 1.0 and True differ
        return isinstance(other, Space) and json.dumps(self.to_json()) == json.dumps(other.to_json())

    __hash__ = None  # type: ignore[assignment]  # spaces are compared, not looked up

    @property
    def size(self) -> int:
        """The number of scalars, p."""
        return int(self._user[-1].stop)

    @property
    def dim(self) -> int:
        """The number of coordinates in the model, d."""
        return int(self._model[-1].stop)

    @property
    def n_points(self) -> float:
        """The number of different points; infinity with a real parameter."""
        each = self.parameters.values()
        if any(parameter.levels == math.inf for parameter in each):  # times an integer beyond 1e308 it overflows
            return math.inf
        return math.prod(parameter.levels**parameter.size for parameter in each)

    @property
    def jumps(self) -> NDArray[np.bool_]:  # (d,)
        """Coordinates that cannot be climbed: categories, and integers with few values."""
        each = self.parameters.values()
        jumps = [isinstance(p, Categorical) or p.levels <= CLIMBED_LEVELS for p in each]
        return np.repeat(jumps, [p.width for p in each])

    @property
    def middle(self) -> Array:  # (p,)
        """Every parameter at its default; without one in the middle of its range, or at its first choice."""
        return np.concatenate([parameter.middle for parameter in self.parameters.values()])

    @property
    def defaults(self) -> dict[str, Value]:
        """The defaults that parameters were given, by name."""
        each = self.parameters.items()
        return {name: p.value(p.default) for name, p in each if p.default is not None}

    @property
    def ordered(self) -> NDArray[np.bool_]:  # (d,)
        """Coordinates of numbers, which have bounds; categories have none."""
        each = self.parameters.values()
        return np.repeat([not isinstance(p, Categorical) for p in each], [p.width for p in each])

    @property
    def is_real(self) -> bool:
        """Whether there are nothing but real numbers."""
        return bool(self._real_scalars.all())

    def encode(self, u: Array) -> Array:  # (n, p) -> (n, d)
        """User units as the model sees them."""
        each = zip(self.parameters.values(), self._user, strict=True)
        return np.concatenate([parameter.encode(u[:, at]) for parameter, at in each], -1)

    def decode(self, z: Array) -> Array:  # (n, d) -> (n, p)
        """The nearest points that can be evaluated."""
        each = zip(self.parameters.values(), self._model, strict=True)
        return np.concatenate([parameter.decode(z[:, at]) for parameter, at in each], -1)

    def snapped(self, z: Array) -> Array:  # (n, d) -> (n, d)
        """The nearest points that can be evaluated, as the model sees them; real coordinates as they are."""
        z = z.copy()
        for parameter, at in zip(self.parameters.values(), self._model, strict=True):
            if not isinstance(parameter, Real):
                z[:, at] = parameter.encode(parameter.decode(z[:, at]))
        return z

    def redrawn(self, z: Array, rng: Generator) -> Array:  # (n, d) -> (n, d)
        """Neighbours: of every row one or two, on average, of its discrete scalars changed, and at least one."""
        u = self.decode(z)
        other = np.concatenate(
            [p.redrawn(u[:, at], rng) for p, at in zip(self.parameters.values(), self._user, strict=True)], -1
        )
        discrete = np.flatnonzero(~self._real_scalars)
        if not len(discrete):
            return z
        changed = np.zeros(u.shape, bool)
        changed[:, discrete] = rng.random((len(u), len(discrete))) < 0.5 / len(discrete)
        changed[np.arange(len(u)), rng.choice(discrete, len(u))] = True
        return np.where(self._real_coordinates, z, self.encode(np.where(changed, other, u)))

    def vector(self, params: Mapping[str, Value], name: str) -> Array:  # -> (p,)
        """Values by name as numbers; raises ValueError or TypeError that says which is wrong."""
        if not isinstance(params, Mapping):
            raise TypeError(f"{name} must be a dict of {', '.join(self.parameters)}, got {params!r}.")
        if set(params) != set(self.parameters):
            missing = [key for key in self.parameters if key not in params]
            unknown = [key for key in params if key not in self.parameters]
            raise ValueError(f"{name} must have {', '.join(self.parameters)}; missing {missing}, unknown {unknown}.")
        each = self.parameters.items()
        return np.concatenate([parameter.checked(params[key], f"{name}[{key!r}]") for key, parameter in each])

    def params(self, u: Array) -> dict[str, Value]:  # (p,)
        """Numbers as values by name."""
        each = zip(self.parameters.items(), self._user, strict=True)
        return {name: parameter.value(u[at]) for (name, parameter), at in each}

    def carried_over(self, old: Space, u: Array) -> Array:  # (n, p of the old one) -> (n, p)
        """Points of an older space that this one contains, added parameters at their defaults.

        Raises ValueError, which says what is not allowed and what to do, if this space does not contain the older one.
        """
        if gone := [name for name in old.parameters if name not in self.parameters]:
            raise ValueError(f"it has {', '.join(map(repr, gone))}, missing here; keep every parameter")
        places = dict(zip(old.parameters, old._user, strict=True))
        columns = []
        for name, new in self.parameters.items():
            if name not in places:
                if new.default is None:
                    raise ValueError(f"{name!r} is new, without a default; give it the value it had so far as default=")
                columns.append(np.tile(new.default, (len(u), 1)))
                continue
            was = old.parameters[name]
            if (type(new), new.shape, new.log) != (type(was), was.shape, was.log):
                raise ValueError(f"{name!r} was {was!r}, not {new!r}; keep its kind, shape and scale")
            if not new.contains(was):
                raise ValueError(f"{name!r} was {was!r}, and {new!r} lacks some of it; keep its values, or add to them")
            columns.append(new.carried_over(was, u[:, places[name]]))
        return np.concatenate(columns, -1)

    def to_json(self) -> dict[str, Any]:
        """The parameters by name, in order."""
        return {"parameters": [[name, parameter.to_json()] for name, parameter in self.parameters.items()]}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """The space that `to_json` was called on; raises ValueError on anything else."""
        try:
            named = [(name, _parameter(**fields)) for name, fields in stored["parameters"]]
            if len(dict(named)) < len(named):
                raise ValueError("a name comes twice")
            return cls(dict(named))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"expected what Space.to_json gave, got {stored!r}: {error}.") from error


def _parameter(kind: str, **fields: Any) -> Parameter:  # noqa: ANN401 - as JSON has it
    kinds: dict[str, type[Parameter]] = {
        "real": Real,
        "integer": Integer,
        "categorical": Categorical,
        "boolean": Boolean,
    }
    return kinds[kind](**fields)


def _slices(sizes: list[int]) -> list[slice]:
    ends = np.cumsum([0, *sizes]).tolist()
    return [slice(a, b) for a, b in itertools.pairwise(ends)]
