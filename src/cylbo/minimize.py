"""The loop that most people want."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from cylbo.box import Bounds, Box, Region
from cylbo.checks import is_integer
from cylbo.config import METHODS, PAPER, Config
from cylbo.errors import SpaceExhaustedError
from cylbo.frame import Frame
from cylbo.optimizer import Optimizer, recommended
from cylbo.progress import ProgressBar
from cylbo.result import Result, without_best
from cylbo.space import Space
from cylbo.storage import read
from cylbo.trial import Direction, History, NotFiniteError, Trial, spelled

__all__ = ["load", "minimize"]


OnError = Literal["raise", "fail"]


def minimize(
    fun: Callable[[Any], float | Mapping[str, Any]],
    bounds: Bounds | Space,
    *,
    budget: int = 200,
    seed: int | None = None,
    method: str | Config = "default",
    center: ArrayLike | Mapping[str, Any] | None = None,
    x0: ArrayLike | Sequence[Mapping[str, Any]] | None = None,
    y0: ArrayLike | None = None,
    region: Region = "box",
    direction: Direction = "minimize",
    noisy: bool | None = None,
    max_suggest_seconds: float | None = None,
    max_memory: float | None = None,
    callback: Callable[[Trial], object] | None = None,
    progress: bool = False,
    on_error: OnError = "raise",
    storage: str | os.PathLike[str] | None = None,
    resume: bool = False,
) -> Result:
    """Minimise an expensive function.

    Args:
        fun: takes a (d,) array in user units, or a dict if `bounds` is a `cylbo.Space`; returns a number, or a dict
            of what `Optimizer.tell` takes: "value", "std", "constraints". A value that is NaN or infinite is a failed
            evaluation.
        bounds: (d, 2), a (low, high) per parameter; or a `cylbo.Space` of named ones, then `center` is a dict and `x0`
            a list of dicts.
        budget: the number of evaluations of `fun`, those of a stored run included.
        seed: any non-negative integer; the same seed gives the same run on the same machine.
        method: "default", "cylinder", "paper", "paper-w", "paper+b", "matern" or a `cylbo.Config`.
        center: (d,) your best guess, evaluated first; by default the middle of the box, in a `cylbo.Space` the
            defaults of its parameters where they have one.
        x0: (k, d) points evaluated earlier, with values `y0`; they cost no budget. If `fun` has constraints, leave out
            those that break one. Without `y0`: points to evaluate first.
        y0: (k,) values at `x0`.
        region: "box" keeps to the bounds; "ball" may leave them for the ball around the box, for functions that are
            defined everywhere.
        direction: "maximize" if large values are good.
        noisy: whether one point may give different values; None finds out, see `Optimizer`. Of a noisy function the
            best point is the one of which the model expects most.
        max_suggest_seconds: what a suggestion may take, about, see `Optimizer`.
        max_memory: bytes that a suggestion may take, about.
        callback: called with every finished trial; may raise StopIteration to end the run.
        progress: show a bar with the best value and the seconds per suggestion.
        on_error: "raise" lets an exception of `fun` through, with the result so far as its attribute `result`, as does
            Ctrl-C; "fail" counts the evaluation as failed, with the exception as its reason, and goes on.
        storage: a file that every evaluation is kept in, so that a kill at any moment loses at most the one under way.
        resume: go on with the run in that file, if there is one: give the same arguments again, but for bounds that
            may be wider and parameters that may be added (see `Optimizer`). An evaluation that was under way is made
            once more; the points are those of a run that was never disturbed.

    """
    if not callable(fun):
        raise TypeError(f"fun must be callable, got {fun!r}.")
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable or None, got {callback!r}.")
    if on_error not in ("raise", "fail"):
        raise ValueError(f"on_error must be 'raise' or 'fail', got {on_error!r}.")
    if not is_integer(budget) or budget < 1:
        raise ValueError(f"budget must be an integer of at least 1, got {budget!r}.")
    opt = Optimizer(
        bounds,
        seed=seed,
        method=method,
        center=center,
        x0=x0,
        y0=y0,
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
        done = len(_made(opt.trials))
        if done > budget:
            message = f"the budget of {budget} evaluations had been used: the file holds {done}"
        with opt, ProgressBar(budget, done=done, shown=progress) as bar:
            for _ in range(budget - done):
                try:
                    trial = next(iter(opt.history.of("open")), None) or opt.ask()
                except SpaceExhaustedError:
                    message = f"evaluated all {opt.space.n_points} points of the space"
                    break
                trial = _evaluate(fun, opt, trial, on_error)
                bar.update(trial, opt.best)
                if callback is not None:
                    try:
                        callback(trial)
                    except StopIteration:
                        message = "stopped by the callback"
                        break
    except BaseException as error:
        stopped = f"stopped by {_named(error)}"
        _attach(error, _result(opt.history, opt.space, *opt.recommended(), success=False, message=stopped), storage)
        raise
    return _result(opt.history, opt.space, *opt.recommended(), success=opt.best is not None, message=message)


def load(path: str | os.PathLike[str]) -> Result:
    """The run in a file, as far as it has come; the file is left as it is, and may be in use.

    Raises:
        StorageError: there is no such file, or it is not the whole file of a run.

    """
    run = read(Path(path))
    history = History(run.trials, run.header["direction"])
    # A method of one's own cannot be made again from the file: then the best value is what there is to show
    method = METHODS.get(run.header["method"] if isinstance(run.header["method"], str) else "", PAPER)
    best, fun = recommended(history, run.space, method, run.memory, noisy=run.header["noisy"])
    message = f"loaded {len(_made(run.trials))} evaluations"
    return _result(history, run.space, best, fun, success=best is not None, message=message)


def _made(trials: list[Trial]) -> list[Trial]:
    """The evaluations that are finished, those before the run (`x0`, `y0`) left out."""
    return [trial for trial in trials if trial.status != "open" and trial.origin != "told"]


def _evaluate(
    fun: Callable[[Any], float | Mapping[str, Any]], opt: Optimizer, trial: Trial, on_error: OnError
) -> Trial:
    try:
        params = trial.params  # anew: what fun does to its argument stays its own affair
        value = fun(trial.x.copy() if params is None else params)
    except Exception as error:  # and nothing else: an evaluation that was interrupted has not failed
        failed = opt.fail(trial, _named(error))
        if on_error == "fail":
            return failed
        raise
    told = dict(value) if isinstance(value, Mapping) else {"value": value}
    try:
        return opt.tell(trial, **told)
    except NotFiniteError:
        return opt.fail(trial, f"the objective returned {spelled(value)}")
    except (TypeError, ValueError) as error:
        opt.fail(trial, str(error))
        expected = "one real number, or a dict of value, std and constraints"
        kind = TypeError if isinstance(error, TypeError) else ValueError  # subclasses may want other arguments
        raise kind(f"the objective must return {expected}: {error}") from error


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
