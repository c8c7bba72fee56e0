"""Radius and direction: a point of the ball as the cylindrical kernel sees it."""

import numpy as np

from cylbo.types import Array

__all__ = ["from_polar", "polar"]


def polar(x: Array) -> tuple[Array, Array]:  # (m, d) -> (m,), (m, d)
    """Radius and direction, T(x) = (|x|, x / |x|). Oh et al. 2018, Eq. (5).

    The centre has no direction: x = 0 gives r = 0 and a = 0. What the kernel makes of
    that is decided in `model/centred.py`.
    """
    # The largest coordinate is divided out first, so that squares neither overflow nor vanish
    largest = np.abs(x).max(-1, keepdims=True)
    scaled = x / np.where(largest > 0, largest, 1.0)
    length = np.linalg.norm(scaled, axis=-1, keepdims=True)
    return (largest * length)[..., 0], scaled / np.where(length > 0, length, 1.0)


def from_polar(r: Array, a: Array) -> Array:  # (m,), (m, d) -> (m, d)
    """The point at radius r in direction a, T^-1(r, a) = r a. Oh et al. 2018, Eq. (5)."""
    return r[..., None] * a
