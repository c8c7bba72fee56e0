"""The loop that most people want."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from cylbo.arguments import checked_arguments, nearest
from cylbo.errors import SpaceExhaustedError, StorageError
from cylbo.methods import PAPER, stored_method
from cylbo.record.history import History, NotFiniteError
from cylbo.record.metadata import checked_metadata
from cylbo.record.trial import ELSEWHERE, Trial, spelled
from cylbo.run.callback import callback_of
from cylbo.run.observed import recommended
from cylbo.run.optimizer import Optimizer
from cylbo.run.progress import ProgressBar
from cylbo.run.result import Result, without_best
from cylbo.search.settings import Method
from cylbo.space.box import Box
from cylbo.space.checks import as_float, as_integer, checked_flag, is_real
from cylbo.space.named import Frame
from cylbo.space.space import Space
from cylbo.store.file import read
from cylbo.types import Bounds, Direction, Region

__all__ = ["load", "minimize"]


OnError = Literal["raise", "fail"]

RETURNED = ("value", "std", "constraints", "metadata")


@checked_arguments()
def minimize(
    fun: Callable[[Any], float | Mapping[str, Any]],
    bounds: Bounds | Space,
    *,
    budget: int = 200,
    seed: int | None = None,
    method: str | Method = "default",
    center: ArrayLike | Mapping[str, Any] | None = None,
    x0: ArrayLike | Sequence[Mapping[str, Any]] | None = None,
    y0: ArrayLike | None = None,
    trials: Iterable[Trial] = (),
    region: Region = "box",
    direction: Direction = "minimize",
    noisy: bool | None = None,
    max_suggest_seconds: float | None = None,
    max_memory: float | None = None,
    max_seconds: float | None = None,
    patience: int | None = None,
    callback: Callable[..., object] | None = None,
    progress: bool = False,
    on_error: OnError = "raise",
    storage: str | os.PathLike[str] | None = None,
    resume: bool = False,
) -> Result:
    """Minimise an expensive function.

    Args:
        fun: takes a (d,) array in user units, or a dict if `bounds` is a `cylbo.Space`; returns a number, or a dict
            of what `Optimizer.tell` takes: "value", "std", "constraints", "metadata". A value that is NaN or infinite
            is a failed evaluation.
        bounds: (d, 2), a (low, high) per parameter; or a `cylbo.Space` of named ones, then `center` is a dict and `x0`
            a list of dicts.
        budget: the number of evaluations of `fun`, those of a stored run included.
        seed: any non-negative integer; the same seed gives the same run on the same machine.
        method: "default", "cylinder", "paper", "paper-w", "paper+b", "matern" or a `cylbo.Method`.
        center: (d,) your best guess, evaluated first; by default the middle of the box, in a `cylbo.Space` the
            defaults of its parameters where they have one.
        x0: (k, d) points evaluated earlier, with values `y0`; they cost no budget. If `fun` has constraints, leave out
            those that break one. Without `y0`: points to evaluate first.
        y0: (k,) values at `x0`; NaN or infinite where an evaluation failed.
        trials: evaluations of an earlier run, as `cylbo.earlier` reads them from a file; they cost no budget.
        region: "box" keeps to the bounds; "ball" may leave them for the ball around the box, for functions that are
            defined everywhere.
        direction: "maximize" if large values are good.
        noisy: whether one point may give different values; None finds out, see `Optimizer`. Of a noisy function the
            best point is the one of which the model expects most.
        max_suggest_seconds: what a suggestion may take, about, see `Optimizer`.
        max_memory: bytes that a suggestion may take, about.
        max_seconds: once the run has taken so long, no other point is suggested; no evaluation is cut off.
        patience: end the run after so many successful evaluations in a row that were no better than the best one.
        callback: called as f(trial) or f(trial, optimizer) with every finished trial; ends the run by returning True
            or raising StopIteration.
        progress: show a bar with the best value and the seconds per suggestion.
        on_error: "raise" lets an exception of `fun` through, with the result so far as its attribute `result`, as does
            Ctrl-C; the trial stays open, and a stored run that is resumed evaluates it again. "fail" counts the
            evaluation as failed, with the exception as its reason, and goes on. A `fun` that returns something else
            than it should is a mistake in the program, whatever is said here: it raises, and the trial stays open.
        storage: a file that every evaluation is kept in, so that a kill at any moment loses at most the one under way.
        resume: go on with the run in that file, if there is one: give the same arguments again, but for bounds that
            may be wider and parameters that may be added (see `Optimizer`). An evaluation that was under way is made
            once more; the points are those of a run that was never disturbed.

    """
    if not callable(fun):
        raise TypeError(f"fun must be callable, got {fun!r}.")
    if on_error not in ("raise", "fail"):
        raise ValueError(f"on_error must be 'raise' or 'fail', got {on_error!r}.")
    if (evaluations := as_integer(budget)) is None or evaluations < 1:
        raise ValueError(f"budget must be an integer of at least 1, got {budget!r}.")
    tolerated = None if patience is None else as_integer(patience)
    if patience is not None and (tolerated is None or tolerated < 1):
        raise ValueError(f"patience must be an integer of at least 1 or None, got {patience!r}.")
    if max_seconds is not None and not (is_real(max_seconds) and as_float(max_seconds) > 0.0):
        raise ValueError(f"max_seconds must be a positive number or None, got {max_seconds!r}.")
    budget, progress = evaluations, checked_flag(progress, "progress")
    until = math.inf if max_seconds is None else time.monotonic() + as_float(max_seconds)
    call_back = callback_of(callback)
    opt = Optimizer(
        bounds,
        seed=seed,
        method=method,
        center=center,
        x0=x0,
        y0=y0,
        trials=trials,
        region=region,
        direction=direction,
        noisy=noisy,
        max_suggest_seconds=max_suggest_seconds,
        max_memory=max_memory,
        storage=storage,
        resume=resume,
    )
    message = f"used the budget of {budget} evaluations"
    try:
        made = _made(opt.trials)
        done, failed = len(made), sum(trial.status == "failed" for trial in made)
        if done > budget:
            message = f"the budget of {budget} evaluations had been used: the file holds {done}"
        with opt, ProgressBar(budget, done=done, failed=failed, shown=progress) as bar:
            for _ in range(budget - done):
                if time.monotonic() >= until:
                    message = f"stopped after max_seconds={max_seconds}"
                    break
                if tolerated is not None and _in_vain(opt.history) >= tolerated:
                    message = f"stopped after {tolerated} evaluations without a better value"
                    break
                try:
                    trial = next(iter(opt.pending), None) or opt.ask()
                except SpaceExhaustedError:
                    message = f"evaluated all {opt.frame.n_points} points of the space"
                    break
                trial = _evaluate(fun, opt, trial, on_error)
                bar.update(trial, opt.best)
                if call_back(trial, opt):
                    message = "stopped by the callback"
                    break
    except BaseException as error:
        stopped = f"stopped by {_named(error)}"
        _attach(error, _result(opt.history, opt.frame, *opt.recommended(), success=False, message=stopped), storage)
        raise
    return _result(opt.history, opt.frame, *opt.recommended(), success=opt.best is not None, message=message)


def load(path: str | os.PathLike[str]) -> Result:
    """The run in a file, as far as it has come; the file is left as it is, and may be in use.

    Raises:
        StorageError: there is no such file, or it is not the whole file of a run.

    """
    run = read(Path(path))
    history = History(run.trials, run.header["direction"])
    # A method with parts of the user's own cannot be made again from the file: then the best value is what there is
    try:
        method = stored_method(run.header["method"])
    except ValueError:
        method = PAPER
    best, fun = recommended(history, run.space, method, run.memory, noisy=run.header["noisy"])
    message = f"loaded {len(_made(run.trials))} evaluations"
    return _result(history, run.space, best, fun, success=best is not None, message=message)


def _made(trials: list[Trial]) -> list[Trial]:
    """The evaluations that the run asked for and that came to an end."""
    return [trial for trial in trials if trial.status in ("done", "failed") and trial.origin not in ELSEWHERE]


def _in_vain(history: History) -> int:
    """How many evaluations of the run succeeded after the best one."""
    if history.best is None:
        return 0
    return sum(trial.status == "done" and trial.id > history.best.id for trial in _made(history.all))


def _evaluate(
    fun: Callable[[Any], float | Mapping[str, Any]], opt: Optimizer, trial: Trial, on_error: OnError
) -> Trial:
    """The trial with its outcome. It stays open where an error ends the run, so that it can be evaluated again."""
    try:
        # Anew: what fun does to its argument stays its own affair
        params = trial.params
        value = fun(trial.x.copy() if params is None else params)
    # And nothing else: an evaluation that was interrupted has not failed
    except Exception as error:
        if on_error == "fail":
            return opt.fail(trial, _named(error))
        if trial.reason:
            error.add_note(
                f"cylbo: trial {trial.id} raised before ({trial.reason}); if it always does, on_error='fail' counts it "
                "as a failed evaluation, and the search learns to avoid its surroundings."
            )
        _leave_open(opt, trial, _named(error))
        raise
    told = dict(value) if isinstance(value, Mapping) else {"value": value}
    try:
        for name in told:
            if name not in RETURNED:
                raise TypeError(f"got {name!r} in the dict; {nearest(str(name), RETURNED) or 'leave it out'}")
        if "value" not in told:
            raise TypeError(f"got a dict without 'value': {spelled(told)}")
        metadata = checked_metadata(told.pop("metadata", None))
        try:
            return opt.tell(trial, **told, metadata=metadata)
        except NotFiniteError:
            return opt.fail(trial, f"the objective returned {spelled(value)}", metadata=metadata)
    except (TypeError, ValueError) as error:
        _leave_open(opt, trial, str(error))
        expected = "one real number, or a dict of value, std, constraints and metadata"
        # Subclasses may want other arguments
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"the objective must return {expected}: {error}") from error


def _leave_open(opt: Optimizer, trial: Trial, reason: str) -> None:
    # The error that is on its way is more important than a full disk
    with contextlib.suppress(StorageError):
        opt.leave_open(trial, reason)


def _named(error: BaseException) -> str:
    text = spelled(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _attach(error: BaseException, result: Result, storage: str | os.PathLike[str] | None) -> None:
    places = [] if storage is None else [f"in {spelled(os.fspath(storage))}, to go on from with resume=True"]
    try:
        error.result = result  # type: ignore[attr-defined]
        places.append("in the attribute `result` of this exception")
    except AttributeError:  # an exception class with __slots__
        pass
    if places:
        error.add_note(f"cylbo: {result.nfev} evaluations were made; they are {' and '.join(places)}.")


def _result(
    history: History, space: Box | Frame, best: Trial | None, fun: float, *, success: bool, message: str
) -> Result:
    made = _made(history.all)
    if best is None:
        message = f"{message}; {without_best(history.all)[0]}"
    return Result(
        _x=None if best is None else best.x.copy(),
        _params=None if best is None else best.params,
        fun=fun,
        nfev=len(made),
        x_iters=np.array([trial.x for trial in made]).reshape(len(made), space.dim),
        func_vals=np.array([trial.value for trial in made]),
        success=success,
        message=message,
        trials=history.all,
        bounds=space.bounds,
        direction=history.direction,
    )
