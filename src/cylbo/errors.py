"""Errors that only cylbo can raise.

    CylboError
    ├── NotPositiveDefiniteError   a covariance matrix resisted every jitter (also ArithmeticError)
    ├── SamplingError              no hyperparameters with a finite density were found (also ArithmeticError)
    ├── OutOfTimeError             a part of a suggestion used up its share of `max_suggest_seconds` (also TimeoutError)
    ├── UnknownTrialError          a trial that this optimizer never handed out (also KeyError)
    ├── TrialClosedError           a trial that was told or failed before (also ValueError)
    ├── SpaceExhaustedError        every point of a finite space has been asked for
    ├── NoResultError              a run has no best point, or its parameters have no names (also ValueError)
    └── StorageError               a file that cannot be used: missing, damaged, of another run, in use (also OSError)

Plain mistakes in arguments raise ValueError or TypeError. What an object of yours raises when it is looked at, in its
`__float__` say, passes as it is. Either way nothing has changed. The first three never leave `Optimizer.ask`: a
suggestion falls back instead (see `search/suggest.py`).
"""

__all__ = [
    "CylboError",
    "NoResultError",
    "NotPositiveDefiniteError",
    "OutOfTimeError",
    "SamplingError",
    "SpaceExhaustedError",
    "StorageError",
    "TrialClosedError",
    "UnknownTrialError",
]


class CylboError(Exception):
    """The root of every error of this package."""


class NotPositiveDefiniteError(CylboError, ArithmeticError):
    """A covariance matrix could not be factorised even with the largest jitter."""


class SamplingError(CylboError, ArithmeticError):
    """The slice sampler has no starting point of positive density."""


class OutOfTimeError(CylboError, TimeoutError):
    """A loop was stopped by the clock; whoever runs it knows the best it has seen."""


class UnknownTrialError(CylboError, KeyError):
    """The trial id was never handed out by this optimizer."""

    def __str__(self) -> str:  # KeyError would show the repr of the message
        return str(self.args[0])


class TrialClosedError(CylboError, ValueError):
    """The trial already has a value or was already reported as failed."""


class SpaceExhaustedError(CylboError):
    """Every point of a finite space has been asked for."""


class NoResultError(CylboError, ValueError):
    """A run has no best point, or its parameters have no names."""


class StorageError(CylboError, OSError):
    """The file of a run cannot be used; it was left as it is."""
