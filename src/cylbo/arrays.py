"""Formulas that take NumPy arrays and torch tensors alike.

Both kinds share their operators; what differs is spelled here.
"""

from typing import Any, TypeAlias

import numpy as np
import torch

__all__ = ["AnyArray", "exp"]

# A float64 array of either kind. Type checkers cannot follow an operator through "one or the other, but the same all the
# way", so they are told nothing.
AnyArray: TypeAlias = Any


def exp(z: AnyArray) -> AnyArray:
    """Elementwise exponential."""
    return torch.exp(z) if isinstance(z, torch.Tensor) else np.exp(z)
