"""NumPy's global generator, lent to packages that draw from it."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

__all__ = ["kept"]


@contextmanager
def kept(seed: int | None = None) -> Iterator[None]:
    """The global generator, with that seed if there is one; afterwards its state is what it was before."""
    state = np.random.get_state()  # noqa: NPY002
    try:
        if seed is not None:
            np.random.seed(seed)  # noqa: NPY002
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002
