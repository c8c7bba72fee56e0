"""How many threads the linear algebra may use while a point is suggested.

One, unless the configuration says otherwise. Evaluations usually keep the other cores busy while the next point is
asked for, and BLAS threads that wait for a busy core cost far more than they bring (`benchmarks/contention.py` shows
by how much). A few hundred rows gain little from more threads even on an idle machine. Where there are many
independent pieces of work, threads of our own take them one by one: a busy core then slows only the piece that it
holds, and the result does not depend on the number of threads.
"""

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

__all__ = ["LARGE", "PIECES", "blas_threads", "in_parallel"]

T = TypeVar("T")
U = TypeVar("U")

MAX_WORKERS = 4  # there is not enough to do for more
LARGE = 256  # data from which on work is worth cutting into pieces; below, handing them out costs more than it brings
PIECES = 4  # whatever the number of cores, so that sums are rounded the same way everywhere


class _Limit:
    """The limit that all threads of the process share: the newest counts, and the last to leave puts back what was."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.active: list[int] = []
        self.original: Any = None  # threadpoolctl has no types

    def enter(self, n: int) -> None:
        with self.lock:
            limiter = _controller().limit(limits=n, user_api="blas")
            self.original = self.original or limiter
            self.active.append(n)

    def leave(self, n: int) -> None:
        with self.lock:
            self.active.remove(n)
            if self.active:
                _controller().limit(limits=self.active[-1], user_api="blas")
            else:
                self.original.restore_original_limits()
                self.original = None


_limit = _Limit()


@functools.cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # finds the loaded BLAS libraries, which takes some milliseconds


@contextlib.contextmanager
def blas_threads(n: int) -> Iterator[None]:
    """Limit BLAS to n threads inside the context; the limits found are put back at its end."""
    _limit.enter(n)
    try:
        yield
    finally:
        _limit.leave(n)


def in_parallel(function: Callable[[T], U], pieces: Sequence[T]) -> list[U]:
    """[function(piece) for piece in pieces], by a few threads; NumPy lets go of the interpreter for large arrays.

    The threads live as long as the call: a pool kept in the module would be dead in a forked process.
    """
    workers = min(len(pieces), MAX_WORKERS, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2)
    if workers < 2:
        return [function(piece) for piece in pieces]
    settings = np.geterr()  # per thread: pass the caller's on

    def quietly(piece: T) -> U:
        with np.errstate(**settings):
            return function(piece)

    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(quietly, pieces))
