"""Ask and tell: the only object with memory. Nothing numerical happens here."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import math
import os
import threading
import time
import warnings
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Never, Self, overload

import numpy as np
from numpy.typing import ArrayLike

from cylbo._version import __version__
from cylbo.arguments import checked_arguments
from cylbo.errors import SpaceExhaustedError
from cylbo.methods import METHODS, resolve_method, revision, stored_method, to_json
from cylbo.numerics.threads import blas_threads
from cylbo.record.history import History, checked_value
from cylbo.record.metadata import checked_metadata
from cylbo.record.suggestion import Suggestion
from cylbo.record.trial import Trial, spelled
from cylbo.rendering import described_optimizer
from cylbo.run.checked import checked_budget, checked_path, checked_seed, framed
from cylbo.run.health import Health, examined
from cylbo.run.log import line, logger
from cylbo.run.observed import observed, recommended
from cylbo.run.warm_start import checked_earlier, checked_trials, earlier_trials
from cylbo.search.budget import cost
from cylbo.search.data import Known
from cylbo.search.memory import Memory
from cylbo.search.settings import Method
from cylbo.search.suggest import suggest
from cylbo.space.checks import as_integer, checked_flag
from cylbo.space.space import Space
from cylbo.store.file import Store
from cylbo.store.resume import Stored, Waiting
from cylbo.types import Array, Bounds, Direction, Region

__all__ = ["Optimizer"]


class Optimizer:
    """Suggests points to evaluate and learns from what they gave.

    ```python
    opt = cylbo.Optimizer(bounds, seed=0)
    while True:
        trial = opt.ask()
        opt.tell(trial, simulate(trial.x))
    ```

    Any number of trials may be open at once; their points differ. The first ask is the centre. A run is a function of
    the arguments and of what was told: the same seed gives the same points, whatever else the process does with
    random numbers.

    Any number of threads may use one optimizer. Asks wait for one another; a tell waits for no ask. A child process
    that was forked gets an error from an optimizer with `storage=`, which its parent holds.
    """

    @checked_arguments()
    def __init__(
        self,
        bounds: Bounds | Space,
        *,
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
        storage: str | os.PathLike[str] | None = None,
        resume: bool = False,
    ) -> None:
        """Set up a search, or go on with a stored one.

        Args:
            bounds: (d, 2), a (low, high) per parameter; or a `cylbo.Space` of named ones, then points are dicts:
                `trial.params`, `center`, the entries of `x0`.
            seed: any non-negative integer; None draws one (see the attribute `seed`).
            method: "default", "cylinder", "paper", "paper-w", "paper+b", "matern" or a `cylbo.Method`.
            center: (d,) the ball's centre in user units, your best guess; by default the middle of the box, in a
                `cylbo.Space` the defaults of its parameters where they have one.
            x0: (k, d) points already evaluated, whose values are `y0`; without `y0` they are asked first. If you are
                going to tell constraints, leave out those that break one: `x0` and `y0` pass for allowed.
            y0: (k,) values at `x0`; NaN or infinite where an evaluation failed.
            trials: evaluations of an earlier run, with their failures, noise, constraints and metadata: what
                `cylbo.earlier` reads from a file, or closed trials of another optimizer or `Result`.
            region: "box" keeps suggestions inside the bounds; "ball" lets them go anywhere in the ball around the
                box, for objectives that are defined everywhere (the paper's experiments).
            direction: "maximize" if large values are good.
            noisy: whether one point may give different values. None finds out: when what separates the good values
                may be noise, the best point is evaluated a second time, once.
            max_suggest_seconds: what an ask may take, about; data, candidates and climbs are cut down to it, and
                `trial.suggestion` says how. The points then depend on how fast the machine is. For methods that fit, as
                the default does.
            max_memory: bytes that an ask may take, about, beside the data themselves; likewise.
            storage: a file in which every ask and tell is kept before it returns. One optimizer at a time may hold it;
                `close` or the end of the process lets it go.
            resume: go on with the run in that file, if there is one; then region, direction and method must be those it
                began with, and so must center, seed, x0, y0 and noisy, or be None. Open trials are open still.
                The bounds must contain those of the file: ranges may be wider, choices more, and a `cylbo.Space` may
                have new parameters, if they have a default: the value that earlier trials get. The file is changed
                accordingly before anything else, in one step; the centre stays, and the model is fitted anew.

        """
        if direction not in ("minimize", "maximize"):
            raise ValueError(f"direction must be 'minimize' or 'maximize', got {direction!r}.")
        if noisy is not None:
            noisy = checked_flag(noisy, "noisy", "True, False or None")
        if checked_flag(resume, "resume") and storage is None:
            raise ValueError("resume=True goes on with a stored run: say in which file with storage=.")
        path = None if storage is None else checked_path(storage)
        self.method = resolve_method(method)
        self._budget = checked_budget(max_suggest_seconds, max_memory, self.method)
        self.direction = direction
        self.noisy = noisy
        self.frame = framed(bounds, center, region)
        points, values = checked_earlier(x0, y0, self.frame)
        earlier = checked_trials(trials, self.frame)
        self.seed = checked_seed(seed)
        self.history = History(direction=direction)
        self._memory = Memory()
        self._waiting: list[Waiting] = []
        # After how many evaluations which trial was the best, and what is expected there
        self._recommended: tuple[int, Trial | None, float] | None = None
        self._asked_at: dict[int, float] = {}
        self._make_locks()
        if max_suggest_seconds is not None:
            cost(self.frame.domain.dim)
        for each in [*earlier, *earlier_trials(points, values)]:
            self.history.keep(self._new(origin="told", **each))
        self._given = [] if values is not None else list(points)
        self._store: Store | None = None
        if path is not None:
            optional = {"center": center, "seed": seed, "x0": x0, "y0": x0, "noisy": noisy, "trials": earlier or None}
            given = ["direction"] + [name for name, value in optional.items() if value is not None]
            self._keep_in(path, points, values, given, resume=resume)

    def __repr__(self) -> str:
        with self._lock:
            counts, best = Counter(str(trial.status) for trial in self.history.all), self.history.best
        path = None if self._store is None else self._store.path
        return described_optimizer(self.frame.dim, self.method.name, self.direction, counts, best, path)

    # ---- what there is to see

    @property
    def space(self) -> Space | Array:
        """What is searched, as it was passed: a `cylbo.Space`, or (d, 2) bounds."""
        return self.frame.bounds

    @property
    def config(self) -> Never:
        """The former name of `method`."""
        raise AttributeError("Optimizer.config is called Optimizer.method since 0.2.")

    @property
    def best(self) -> Trial | None:
        """The best trial so far that keeps every constraint, or None before there is one.

        If values are noisy it is the one of which the model expects most, for the best value seen is luck.
        """
        return self.recommended()[0]

    def recommended(self) -> tuple[Trial | None, float]:
        """The best trial and what an evaluation there is expected to give: its value, or the model's if it is noisy."""
        with self._lock:
            history, memory = self.history.copy(), self._memory
            closed = len(history) - len(history.of("open"))
            if self._recommended is not None and self._recommended[0] == closed:
                return self._recommended[1:]
        # Out of the lock: with noise the model is asked, and nobody needs to wait for that
        found = recommended(history, self.frame, self.method, memory, noisy=self.noisy)
        with self._lock:
            if memory is self._memory:
                self._recommended = closed, *found
        return found

    @property
    def trials(self) -> list[Trial]:
        """All trials by id, earlier evaluations first; `trials[trial.id]` is the newest state of a trial."""
        with self._lock:
            return self.history.all

    @property
    def pending(self) -> list[Trial]:
        """The open trials: asked for, and not yet told, failed or cancelled.

        The search believes that they come out as the model predicts. After a kill, evaluate those again that were
        lost, or `cancel` them.
        """
        with self._lock:
            return self.history.of("open")

    def health(self) -> Health:
        """What the last suggestions and the model say about the search; `print` it."""
        with self._lock:
            history, memory = self.history.copy(), self._memory
        known = observed(history, self.frame, noisy=self.noisy)
        with blas_threads(self.method.threads), np.errstate(all="ignore"):
            return examined(history.all, known, memory.state, self.frame, self.method)

    # ---- ask

    @overload
    def ask(self, n: None = None) -> Trial: ...
    @overload
    def ask(self, n: int) -> list[Trial]: ...
    @checked_arguments()
    def ask(self, n: int | None = None) -> Trial | list[Trial]:
        """A new open trial at the most promising point that is not taken yet; or n of them, a batch.

        Never fails for numerical reasons; `trial.origin` says how the point came about. Whether they were asked for
        together or one by one, open trials are believed to come out as the model predicts, so that the next one lies
        elsewhere. Tell them in any order.

        Raises:
            SpaceExhaustedError: the space is finite and all of its points have been asked for. A batch ends there.

        """
        if n is None:
            return self._ask()
        if (size := as_integer(n)) is None or size < 1:
            raise ValueError(f"n must be an integer of at least 1, got {n!r}; ask() without it gives one trial.")
        batch = [self._ask()]
        with contextlib.suppress(SpaceExhaustedError):
            while len(batch) < size:
                batch.append(self._ask())
        return batch

    def _ask(self) -> Trial:
        self._check_process()
        with self._asking:
            began = time.perf_counter()
            self._skip_evaluated()
            with self._lock:
                history, memory = self.history.copy(), self._memory
                wanted = self._waiting[:1] if not self._given else []
            center = self.frame.center
            said = Suggestion()
            if self._given:
                x, origin = self._given[0], "given"
            elif wanted:
                x, origin = wanted[0].x, "enqueued"
            elif not any(np.array_equal(trial.x, center) for trial in history.all if trial.status != "cancelled"):
                x, origin = center, "center"
            else:
                x, origin, memory, said = self._suggest(history, memory)
            with self._lock:
                trial = self._new(x, origin=origin, seconds=time.perf_counter() - began, suggestion=said)
                if self._store is not None:
                    self._store.asked(trial, memory, wanted)
                # Nothing has changed up to here, whatever went wrong. From here on an interrupt finds all of it changed
                # or nothing, because this is one step of Python's
                changed = self.history.copy()
                changed.keep(trial)
                given, waiting = self._given[origin == "given" :], self._waiting[len(wanted) :]
                vars(self).update(history=changed, _memory=memory, _recommended=None, _given=given, _waiting=waiting)
                self._asked_at[trial.id] = time.perf_counter()
                return trial

    def _suggest(self, history: History, memory: Memory) -> tuple[Array, str, Memory, Suggestion]:
        taken = _taken(history)
        if len(taken) >= self.frame.n_points:
            raise SpaceExhaustedError(f"all {self.frame.n_points} points of the space have been asked for.")
        rng = np.random.default_rng([self.seed, len(history)])
        known = observed(history, self.frame, noisy=self.noisy)
        # Numbers that vanish or overflow on the way are dealt with there, whatever the caller has set NumPy to do
        with blas_threads(self.method.threads), np.errstate(all="ignore"):
            made = suggest(known, memory.state, self.frame.domain, self.method, rng, memory.limits, self._budget)
        x, origin = self.frame.to_user(made.x), str(made.rung)
        said = Suggestion.from_json(dict(made.info))
        if made.rung == "repeated":
            # To the last bit
            x = history.of("done")[known.index(made.x)].x
        elif tuple(x.tolist()) in taken:
            # Only rounding to user units can do that, or a space of few points
            x, origin = self.frame.unseen(taken, rng), "space-filling"
            # Those are of another point
            said = dataclasses.replace(said, predicted=None, predicted_sd=None)
        if said.predicted is not None:
            said = dataclasses.replace(said, predicted=history.sign * said.predicted)
        return x, origin, Memory(made.state, made.limits), said

    # ---- tell

    @checked_arguments()
    def tell(
        self,
        trial: Trial | int,
        value: float,
        *,
        std: float | None = None,
        constraints: Iterable[float] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Trial:
        """Record the value of an open trial (or of its id). What cannot be used raises, and changes nothing.

        A trial is a snapshot: the one that is returned has the value, the one that was asked still has none.

        Args:
            trial: as it was asked, or its id.
            value: one finite number.
            std: the standard deviation of the noise in `value`, if you know it; of None and NaN it is inferred.
            constraints: numbers that must be <= 0 for the point to be allowed, as many with every value. The search
                learns where they hold, and only points where they do can be the best.
            metadata: what you want to keep with the trial: any JSON values by name, such as an accuracy or a path.

        """
        self._check_process()
        with self._lock:
            found = self.history[trial]
            outcome = self._checked_outcome(found, value, std, constraints, metadata)
            closed = self._closed(self.history.closed(trial, **outcome))
        return self._logged(closed)

    @checked_arguments()
    def fail(self, trial: Trial | int, reason: str = "", *, metadata: Mapping[str, Any] | None = None) -> Trial:
        """Record that an open trial gave nothing: where others may fail too is learned, and avoided."""
        self._check_process()
        with self._lock:
            outcome = {"reason": spelled(reason), "metadata": checked_metadata(metadata)}
            closed = self._closed(self.history.closed(trial, status="failed", **outcome))
        return self._logged(closed)

    @checked_arguments()
    def cancel(self, trial: Trial | int) -> Trial:
        """Withdraw an open trial whose evaluation was lost or is not wanted: the model learns nothing from it.

        Its point may be suggested again, and if it was the centre it is.
        """
        self._check_process()
        with self._lock:
            closed = self._closed(self.history.closed(trial, status="cancelled"))
        return self._logged(closed)

    @checked_arguments()
    def add(
        self,
        point: ArrayLike | Mapping[str, Any],
        value: float,
        *,
        std: float | None = None,
        constraints: Iterable[float] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Trial:
        """Record an evaluation that nobody asked for, at any time; the other arguments are those of `tell`.

        It counts neither towards the budget of `minimize` nor as a suggestion by which the model is judged.

        Args:
            point: (d,) in user units, or a dict in a `cylbo.Space`.
            value: one finite number.
            std: as in `tell`.
            constraints: as in `tell`.
            metadata: as in `tell`.

        """

        def outcome(found: Trial) -> dict[str, Any]:
            return self._checked_outcome(found, value, std, constraints, metadata)

        return self._added(point, outcome)

    @checked_arguments()
    def add_failed(
        self,
        point: ArrayLike | Mapping[str, Any],
        reason: str = "",
        *,
        metadata: Mapping[str, Any] | None = None,
    ) -> Trial:
        """Record that an evaluation failed that nobody asked for; it does not make the search more cautious."""
        outcome = {"status": "failed", "reason": spelled(reason), "metadata": checked_metadata(metadata)}
        return self._added(point, lambda _: outcome)

    @checked_arguments()
    def enqueue(self, point: ArrayLike | Mapping[str, Any]) -> None:
        """Have a point asked before any other: the next asks give the points that wait, in this order.

        A point that was evaluated already, is open or waits already is skipped with a warning, unless values are known
        to be noisy. One that failed is asked again.

        Args:
            point: (d,) in user units, or a dict in a `cylbo.Space`; parameters that it leaves out are at their
                default, or where the centre is if they have none.

        """
        self._check_process()
        wished: Any = point
        x = self.frame.checked_wish(wished, "point")
        with self._lock:
            reason = self._why_not(x, self._waiting)
            if reason is None:
                wanted = Waiting(self._waiting[-1].id + 1 if self._waiting else 0, x)
                if self._store is not None:
                    self._store.enqueued(wanted)
                self._waiting.append(wanted)
        if reason is not None:
            warnings.warn(f"enqueue() skipped a point: {reason}", stacklevel=3)

    def _skip_evaluated(self) -> None:
        """Drop the points that wait in front and have been evaluated meanwhile."""
        reasons = []
        with self._lock:
            while self._waiting and (reason := self._why_not(self._waiting[0].x, [])) is not None:
                if self._store is not None:
                    self._store.dropped(self._waiting[0])
                del self._waiting[0]
                reasons.append(reason)
        for reason in reasons:
            warnings.warn(f"ask() skipped a point that was enqueued: {reason}", stacklevel=5)

    def _why_not(self, x: Array, waiting: Sequence[Waiting]) -> str | None:
        """Why a point need not be asked; None if there is no reason."""
        # Comparing one number first keeps this quick for thousands of trials
        there = [trial for trial in self.history.all if trial.x[0] == x[0] and np.array_equal(trial.x, x)]
        if done := [trial for trial in there if trial.status == "done"]:
            if self._known().noisy:
                return None
            return f"trial {done[0].id} gave its value, {done[0].value:.6g}; say noisy=True if it may give another one."
        if pending := [trial for trial in there if trial.status == "open"]:
            return f"trial {pending[0].id} is open there; tell, fail or cancel that one."
        return "it waits already." if any(np.array_equal(x, each.x) for each in waiting) else None

    def _checked_outcome(
        self, found: Trial, value: object, std: object, constraints: object, metadata: object
    ) -> dict[str, Any]:
        return {
            "value": checked_value(value, found),
            "status": "done",
            "std": self.history.checked_std(std, found),
            "constraints": self.history.checked_constraints(constraints, found),
            "metadata": checked_metadata(metadata),
        }

    def _added(self, point: Any, outcome: Callable[[Trial], dict[str, Any]]) -> Trial:  # noqa: ANN401 - checked here
        self._check_process()
        x = self.frame.checked_point(point, "point")
        # A suggestion that is being made must not come to the same point, and takes the next id
        with self._asking, self._lock:
            blank = self._new(x, origin="added")
            added = self._closed(dataclasses.replace(blank, **outcome(blank)))
        return self._logged(added)

    def _closed(self, trial: Trial) -> Trial:
        """Keep the outcome of a trial, in the file first."""
        if self._store is not None:
            self._store.kept(trial)
        return self.history.keep(trial)

    def _logged(self, trial: Trial) -> Trial:
        """The trial, after a line in the log.

        To be called without a lock: a handler of the log has a lock too, which another thread may hold while it waits
        for one of this optimizer, because it is about to show it.
        """
        asked_at = self._asked_at.pop(trial.id, None)
        if logger.isEnabledFor(logging.INFO):
            seconds = None if asked_at is None else time.perf_counter() - asked_at
            with self._lock:
                best = self.history.best
            logger.info(line(trial, best, seconds))
        return trial

    def leave_open(self, trial: Trial, reason: str) -> None:
        """Note why the evaluation of a trial that stays open did not come to an end."""
        with self._lock:
            noted = dataclasses.replace(self.history[trial], reason=reason)
            if self._store is not None:
                self._store.kept(noted)
            self.history.keep(noted)

    # ---- the file

    def close(self) -> None:
        """Let go of the file, if there is one, so that others may go on with it. Done twice it does nothing.

        A suggestion that is being made is waited for.
        """
        if self._store is not None:
            with self._asking, self._lock:
                self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        """What a copy is made of; raises TypeError if there is a file, which only one optimizer may write."""
        if self._store is not None:
            raise TypeError(
                "an Optimizer with storage= cannot be copied or pickled, because one file belongs to one optimizer; "
                f"close() it and go on with cylbo.Optimizer(..., storage={str(self._store.path)!r}, resume=True), or "
                "read the file with cylbo.load()."
            )
        with self._lock:
            mine = {"history": self.history.copy(), "_waiting": list(self._waiting), "_given": list(self._given)}
            mine["_asked_at"] = {}
            return {name: value for name, value in vars(self).items() if name not in ("_lock", "_asking")} | mine

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._make_locks()

    def _make_locks(self) -> None:
        # `_asking` is held by whoever makes a trial, for as long as that takes; `_lock` by whoever looks at the record
        # or changes it, which takes a transaction at the most. Who needs both takes `_asking` first
        self._asking, self._lock = threading.RLock(), threading.RLock()
        _optimizers.add(self)

    def _check_process(self) -> None:
        """Before anything is waited for or computed that could not be kept."""
        if self._store is not None:
            self._store.check_process()

    def _known(self) -> Known:
        return observed(self.history, self.frame, noisy=self.noisy)

    def _new(self, x: Array, **fields: object) -> Trial:
        return self.history.new(x, to_params=self.frame.params, **fields)

    def _keep_in(self, path: Path, points: Array, values: Array | None, given: list[str], *, resume: bool) -> None:
        """Begin the file, or take over what is in it."""
        header = {
            "cylbo": __version__,
            "space": self.frame.to_json(),
            "direction": self.direction,
            "noisy": self.noisy,
            "method": to_json(self.method),
            "is_ours": METHODS.get(self.method.name) == self.method,
            "revision": revision(self.method),
            "seed": self.seed,
            "x0": points.tolist(),
            "y0": None if values is None else [y if math.isfinite(y) else None for y in values.tolist()],
        }
        begun = Stored(header, self.frame, self.history.all)
        self._store, run = Store.begin(path, begun, resume=resume, given=given)
        self.frame, self.seed, self.noisy, self._memory = run.space, run.header["seed"], run.header["noisy"], run.memory
        # With the settings that the run began with, should those of the name have changed since
        with contextlib.suppress(ValueError):
            # Parts of the user's own are those that were passed
            self.method = stored_method(run.header["method"])
        self.history, self._waiting = History(run.trials, self.direction), list(run.waiting)
        given_points = [] if run.header["y0"] is not None else run.header["x0"]
        asked = sum(trial.origin == "given" for trial in run.trials)
        self._given = [np.array(x) for x in given_points[asked:]]


# A fork copies locks as they are, also those that a thread holds which is not there in the child
_optimizers: weakref.WeakSet[Optimizer] = weakref.WeakSet()


def _renew_locks() -> None:
    for optimizer in list(_optimizers):
        optimizer._make_locks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


def _taken(history: History) -> set[tuple[float, ...]]:
    """All points that were asked for or told, and not withdrawn."""
    return {tuple(trial.x.tolist()) for trial in history.all if trial.status != "cancelled"}
