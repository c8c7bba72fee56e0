"""What the user gave: is it a number or a truth value, and which."""

import math
import numbers
import sys
from typing import TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from cylbo.types import Array

__all__ = [
    "FIXED",
    "are_apart",
    "as_float",
    "as_integer",
    "as_scalar",
    "checked_flag",
    "checked_numbers",
    "is_integer",
    "is_real",
]

FIXED = "leave a parameter that is fixed out, and set it in your function"


def is_integer(value: object) -> TypeGuard[int]:
    """Python's and NumPy's integers are; True, False and durations are none."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool | np.timedelta64)


def is_real(value: object) -> TypeGuard[float]:
    """Integers, floats and fractions of any kind are; True, False and durations are none."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.timedelta64)


def as_integer(value: object) -> int | None:
    """The integer that is meant, by a float such as 1e2 too; None if it is no integer."""
    if is_integer(value) or (isinstance(value, float | np.floating) and value.is_integer()):
        return int(value)
    return None


def as_scalar(value: object) -> object:
    """The entry of an array that has one, of any library and shape; anything else as it is."""
    shape, item = getattr(value, "shape", None), getattr(value, "item", None)
    if not isinstance(shape, tuple) or math.prod(shape) != 1 or not callable(item):
        return value
    # NumPy's item() would give 0 where the entry is masked, and an integer where it is a date
    is_date = isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "mM"
    return value if is_date or np.ma.is_masked(value) else item()


def checked_flag(value: object, name: str, expected: str = "True or False") -> bool:
    """Python's or NumPy's True or False; nothing else is one, whatever `bool` makes of it."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be {expected}, got {value!r}.")
    return bool(value)


def as_float(value: float) -> float:
    """The nearest float; an infinite one where an integer is beyond 1e308."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def checked_numbers(values: ArrayLike, name: str) -> Array:
    """An own float64 copy of an array of real numbers; strings and complex numbers are none, True and False 1 and 0."""
    try:
        if np.ma.is_masked(values):
            raise TypeError("some of its entries are masked")
        array = np.array(values)
        if array.dtype.kind == "O":  # integers beyond 64 bits, or a mixture
            array = np.array([float(v) if isinstance(v, numbers.Real) else None for v in array.flat]).reshape(
                array.shape
            )
        if array.dtype.kind not in "biuf":
            raise TypeError(f"its entries are {array.dtype}")
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"{name} must be an array of numbers, got {values!r}.") from error


def are_apart(low: float, high: float) -> bool:
    """Whether there are millions of numbers between them, at the least: those next to 0 are no closer than 5e-324."""
    return high - low > 1e-9 * max(abs(low), abs(high), sys.float_info.min)
