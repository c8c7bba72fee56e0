"""Search spaces of named parameters, and the way from values by name to the coordinates of the model."""

from __future__ import annotations

import itertools
import json
import keyword
import math
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from cylbo.rendering import html_table, listed, shown, shown_name
from cylbo.space.categories import Boolean, Categorical
from cylbo.space.parameters import Integer, Parameter, Real, Value
from cylbo.types import Array

__all__ = ["CLIMBED_LEVELS", "MOST_ROWS", "Space"]


CLIMBED_LEVELS = 32  # integers with more values than these are climbed as if they were real, and rounded at the end


# Parameters in a notebook
MOST_ROWS = 30


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
