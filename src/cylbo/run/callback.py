"""The callback of a user, as the loop calls it."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from cylbo.record.trial import Trial
from cylbo.run.optimizer import Optimizer

__all__ = ["callback_of"]


def callback_of(callback: Callable[..., object] | None) -> Callable[[Trial, Optimizer], bool]:
    """The user's f(trial) or f(trial, optimizer), as a function that says whether the run is to end."""
    if callback is None:
        return lambda trial, opt: False
    if not callable(callback):
        raise TypeError(f"callback must be callable or None, got {callback!r}.")
    wants_optimizer = _takes(callback, 2) and (not _takes(callback, 1) or _takes(callback, 1, "optimizer"))
    if not wants_optimizer and not _takes(callback, 1):
        raise TypeError(f"callback must be callable as f(trial) or f(trial, optimizer), got {callback!r}.")

    def call_back(trial: Trial, opt: Optimizer) -> bool:
        try:
            return (callback(trial, opt) if wants_optimizer else callback(trial)) is True
        except StopIteration:
            return True

    return call_back


def _takes(function: Callable[..., object], n: int, *names: str) -> bool:
    """Whether a function can be called with n arguments by position and these by name."""
    try:
        inspect.signature(function).bind(*[None] * n, **dict.fromkeys(names))
    except TypeError:
        return False
    except ValueError:
        # A function of another language does not say
        return n == 1 and not names
    return True
