"""The trials of a run as the model sees them, and the best of them.

A trial enters as data (done), as a place where evaluations fail (failed) or as a pending point (open). A cancelled one
does not enter at all.
"""

import math

import numpy as np

from cylbo.numerics.threads import blas_threads
from cylbo.record.history import History
from cylbo.record.trial import Trial
from cylbo.search.data import Known
from cylbo.search.learn import expected
from cylbo.search.memory import Memory
from cylbo.search.settings import Method
from cylbo.space.box import Box
from cylbo.space.named import Frame
from cylbo.types import Array

__all__ = ["observed", "recommended"]

# The share of failures among so many evaluations says how cautious the search must be
LATELY = 20


def observed(history: History, frame: Box | Frame, *, noisy: bool | None) -> Known:
    """What is known of the objective, in ball coordinates.

    Evaluations that nobody asked for (origin "added") count neither as recent failures nor as points that the search
    chose without the model.
    """
    done = history.of("done")
    n_constraints = max((len(trial.constraints) for trial in done), default=0)
    # Of earlier evaluations, x0 and y0
    unknown = (np.nan,) * n_constraints
    chosen = [trial for trial in history.all if trial.status != "cancelled" and trial.origin != "added"]
    guided = [trial for trial in chosen if trial.suggestion.predicted is not None]
    lately = [trial.status == "failed" for trial in chosen if trial.status != "open"][-LATELY:]

    return Known(
        x=_in_ball(done, frame),
        y=history.sign * np.array([trial.value for trial in done]),
        pending=_in_ball(history.of("open"), frame),
        failed=_in_ball(history.of("failed"), frame),
        noise=np.array([trial.std for trial in done]),
        constraints=np.array([trial.constraints or unknown for trial in done]).reshape(len(done), n_constraints),
        failed_lately=sum(lately) / max(len(lately), 1),
        exact=None if noisy is None else not noisy,
        surprises=np.array([history.sign * _surprise(trial) for trial in guided if trial.status == "done"]),
        n_unguided=len(chosen) - len(guided),
    )


def recommended(
    history: History, frame: Box | Frame, config: Method, memory: Memory, *, noisy: bool | None = None
) -> tuple[Trial | None, float]:
    """The best trial of a run, and what an evaluation there is expected to give; see `Optimizer.recommended`."""
    best = history.best
    known = observed(history, frame, noisy=noisy)
    if best is None or not (config.repeats and known.noisy):
        return best, math.nan if best is None else best.value
    with blas_threads(config.threads), np.errstate(all="ignore"):
        values = expected(known, frame.domain, memory.state, config)
    if values is None or not np.isfinite(values).all():
        return best, best.value
    i = int(np.where(known.allowed, values, np.inf).argmin())
    return history.of("done")[i], history.sign * float(values[i])


def _surprise(trial: Trial) -> float:
    """By how many standard deviations the value lies above what was predicted."""
    predicted, sd = trial.suggestion.predicted, trial.suggestion.predicted_sd
    return (trial.value - predicted) / sd if predicted is not None and sd else 0.0


def _in_ball(trials: list[Trial], frame: Box | Frame) -> Array:  # -> (n, d)
    if not trials:
        return np.empty((0, frame.domain.dim))
    return frame.to_ball(np.stack([trial.x for trial in trials]))
