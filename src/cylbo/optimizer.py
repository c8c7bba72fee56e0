"""Ask and tell: the only object with memory. Nothing numerical happens here."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, overload

import numpy as np
from numpy.typing import ArrayLike

from cylbo.box import Bounds, Box, Region
from cylbo.checks import as_float, checked_numbers, is_integer, is_real
from cylbo.config import Config, described, resolve_method
from cylbo.errors import SpaceExhaustedError
from cylbo.frame import Frame
from cylbo.geometry import Array
from cylbo.health import Health, examined
from cylbo.known import Known
from cylbo.learn import expected, fitted
from cylbo.pace import Budget, cost
from cylbo.space import Parameter, Space
from cylbo.storage import Memory, Store, Stored
from cylbo.suggest import suggest
from cylbo.threads import blas_threads
from cylbo.trial import Direction, History, Trial, checked_value, spelled
from cylbo.version import __version__

__all__ = ["Optimizer", "recommended"]

LATELY = 20  # evaluations, of which the failed ones make the search cautious


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
    """

    def __init__(
        self,
        bounds: Bounds | Space,
        *,
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
        storage: str | os.PathLike[str] | None = None,
        resume: bool = False,
    ) -> None:
        """Set up a search, or go on with a stored one.

        Args:
            bounds: (d, 2), a (low, high) per parameter; or a `cylbo.Space` of named ones, then points are dicts:
                `trial.params`, `center`, the entries of `x0`.
            seed: any non-negative integer; None draws one (see the attribute `seed`).
            method: "default", "cylinder", "paper", "paper-w", "paper+b", "matern" or a `cylbo.Config`.
            center: (d,) the ball's centre in user units, your best guess; by default the middle of the box, in a
                `cylbo.Space` the defaults of its parameters where they have one.
            x0: (k, d) points already evaluated, whose values are `y0`; without `y0` they are asked first. If you are
                going to tell constraints, leave out those that break one: `x0` and `y0` pass for allowed.
            y0: (k,) values at `x0`.
            region: "box" keeps suggestions inside the bounds; "ball" lets them go anywhere in the ball around the
                box, for objectives that are defined everywhere (the paper's experiments).
            direction: "maximize" if large values are good.
            noisy: whether one point may give different values. None finds out: when what separates the good values
                may be noise, the best point is evaluated a second time, once.
            max_suggest_seconds: what an ask may take, about; data, candidates and climbs are cut down to it, and
                `trial.info` says how. The points then depend on how fast the machine is. For methods that fit, as the
                default does.
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
        if noisy is not None and not isinstance(noisy, bool):
            raise TypeError(f"noisy must be True, False or None, got {noisy!r}.")
        if resume and storage is None:
            raise ValueError("resume=True goes on with a stored run: say in which file with storage=.")
        self.config = resolve_method(method)
        self._budget = _checked_budget(max_suggest_seconds, max_memory, self.config)
        self.direction = direction
        self.noisy = noisy
        self.space = _framed(bounds, center, region)
        points, values = self._checked_earlier(x0, y0)
        self.seed = _checked_seed(seed)
        self.history = History(direction=direction)
        self._memory = Memory()
        self._recommended: tuple[int, Trial | None, float] | None = None  # and after how many evaluations
        if max_suggest_seconds is not None:
            cost(self.space.domain.dim)
        if values is not None:
            for x, y in zip(points, values.tolist(), strict=True):
                self.history.keep(self._new(x, value=y, status="done", origin="told"))
        self._queue = [] if values is not None else list(points)
        self._store: Store | None = None
        if storage is not None:
            optional = {"center": center, "seed": seed, "x0": x0, "y0": x0, "noisy": noisy}
            given = ["direction", "method"] + [name for name, value in optional.items() if value is not None]
            if not isinstance(storage, str | os.PathLike):
                raise TypeError(f"storage must be the path of a file or None, got {storage!r}.")
            self._keep_in(Path(storage), points, values, given, resume=resume)

    @property
    def best(self) -> Trial | None:
        """The best trial so far that keeps every constraint, or None before there is one.

        If values are noisy it is the one of which the model expects most, for the best value seen is luck.
        """
        return self.recommended()[0]

    def recommended(self) -> tuple[Trial | None, float]:
        """The best trial and what an evaluation there is expected to give: its value, or the model's if it is noisy."""
        closed = len(self.history) - len(self.history.of("open"))
        if self._recommended is None or self._recommended[0] != closed:
            found = recommended(self.history, self.space, self.config, self._memory, noisy=self.noisy)
            self._recommended = closed, *found
        return self._recommended[1:]

    @property
    def trials(self) -> list[Trial]:
        """All trials by id, earlier evaluations first."""
        return self.history.all

    @overload
    def ask(self, n: None = None) -> Trial: ...
    @overload
    def ask(self, n: int) -> list[Trial]: ...
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
        if not is_integer(n) or n < 1:
            raise ValueError(f"n must be an integer of at least 1, got {n!r}; ask() without it gives one trial.")
        batch = [self._ask()]
        with contextlib.suppress(SpaceExhaustedError):
            while len(batch) < n:
                batch.append(self._ask())
        return batch

    def _ask(self) -> Trial:
        began = time.perf_counter()
        if len(self.trials) >= self.space.n_points and len(self._taken()) >= self.space.n_points:
            raise SpaceExhaustedError(f"all {self.space.n_points} points of the space have been asked for.")
        center, memory = self.space.center, self._memory
        info: Mapping[str, Any] = {}
        if self._queue:
            x, origin = self._queue[0], "given"
        elif not any(np.array_equal(trial.x, center) for trial in self.history.all):
            x, origin = center, "center"
        else:
            x, origin, memory, info = self._suggest()
        trial = self._new(x, origin=origin, seconds=time.perf_counter() - began, info=info)
        if self._store is not None:
            self._store.asked(trial, memory)
        # Nothing has changed up to here, whatever went wrong
        self._memory, self._recommended = memory, None
        del self._queue[:1]
        return self.history.keep(trial)

    def tell(
        self,
        trial: Trial | int,
        value: float,
        *,
        std: float | None = None,
        constraints: Iterable[float] | None = None,
    ) -> Trial:
        """Record the value of an open trial (or of its id). What cannot be used raises, and changes nothing.

        Args:
            trial: as it was asked, or its id.
            value: one finite number.
            std: the standard deviation of the noise in `value`, if you know it; of None and NaN it is inferred.
            constraints: numbers that must be <= 0 for the point to be allowed, as many with every value. The search
                learns where they hold, and only points where they do can be the best.

        """
        found, history = self.history[trial], self.history
        closed = history.closed(
            trial,
            value=checked_value(value, found),
            status="done",
            std=history.checked_std(std, found),
            constraints=history.checked_constraints(constraints, found),
        )
        return self._close(closed)

    def fail(self, trial: Trial | int, reason: str = "") -> Trial:
        """Record that an open trial gave nothing: where others may fail too is learned, and avoided."""
        return self._close(self.history.closed(trial, status="failed", reason=spelled(reason)))

    def health(self) -> Health:
        """What the last suggestions and the model say about the search; `print` it."""
        with blas_threads(self.config.threads), np.errstate(all="ignore"):
            return examined(self.trials, self._known(), self._memory.state, self.space, self.config)

    def close(self) -> None:
        """Let go of the file, if there is one, so that others may go on with it. Done twice it does nothing."""
        if self._store is not None:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _close(self, trial: Trial) -> Trial:
        if self._store is not None:
            self._store.closed(trial)
        return self.history.keep(trial)

    def _suggest(self) -> tuple[Array, str, Memory, Mapping[str, Any]]:
        rng = np.random.default_rng([self.seed, len(self.history)])
        memory, known = self._memory, self._known()
        # Numbers that vanish or overflow on the way are dealt with there, whatever the caller has set NumPy to do
        with blas_threads(self.config.threads), np.errstate(all="ignore"):
            made = suggest(known, memory.state, self.space.domain, self.config, rng, memory.limits, self._budget)
        x, origin = self.space.to_user(made.x), str(made.rung)
        info, taken = dict(made.info), self._taken()
        if made.rung == "repeated":  # to the last bit
            x = self.history.of("done")[known.index(made.x)].x
        elif tuple(x.tolist()) in taken:  # only rounding to user units can do that, or a space of few points
            x, origin = self.space.unseen(taken, rng), "space-filling"
            for name in ("predicted", "predicted_sd"):  # of another point
                info.pop(name, None)
        if "predicted" in info:
            info["predicted"] *= self.history.sign
        return x, origin, Memory(made.state, made.limits), info

    def _taken(self) -> set[tuple[float, ...]]:
        """All points that were asked for or told."""
        return {tuple(trial.x.tolist()) for trial in self.trials}

    def _new(self, x: Array, **fields: object) -> Trial:
        return self.history.new(x, to_params=self.space.params, **fields)

    def _known(self) -> Known:
        return _known(self.history, self.space, noisy=self.noisy)

    def _checked_earlier(self, x0: Any, y0: ArrayLike | None) -> tuple[Array, Array | None]:  # noqa: ANN401
        """Points (k, d), and their values (k,) if they have been evaluated."""
        if x0 is None:
            if y0 is not None:
                raise ValueError("y0 was given without x0; pass the (k, d) points that gave these values as x0.")
            return np.empty((0, self.space.dim)), None
        points = self.space.checked_evaluated(x0, "x0")
        if y0 is None:
            return points, None
        values = checked_numbers(y0, "y0")
        if values.shape != (len(points),):
            raise ValueError(f"y0 must have shape ({len(points)},), one value per row of x0, got {values.shape}.")
        if not np.isfinite(values).all():
            raise ValueError(f"y0 must be finite, got {values}; leave failed evaluations out of x0 and y0.")
        return points, values

    def _keep_in(self, path: Path, points: Array, values: Array | None, given: list[str], *, resume: bool) -> None:
        """Begin the file, or take over what is in it."""
        header = {
            "cylbo": __version__,
            "space": self.space.to_json(),
            "direction": self.direction,
            "noisy": self.noisy,
            "method": described(self.config),
            "seed": self.seed,
            "x0": points.tolist(),
            "y0": None if values is None else values.tolist(),
        }
        begun = Stored(header, self.space, self.history.all)
        self._store, run = Store.begin(path, begun, resume=resume, given=given)
        self.space, self.seed, self.noisy, self._memory = run.space, run.header["seed"], run.header["noisy"], run.memory
        self.history = History(run.trials, self.direction)
        waiting = [] if run.header["y0"] is not None else run.header["x0"]
        asked = sum(trial.origin == "given" for trial in run.trials)
        self._queue = [np.array(x) for x in waiting[asked:]]


def recommended(
    history: History, space: Box | Frame, config: Config, memory: Memory, *, noisy: bool | None = None
) -> tuple[Trial | None, float]:
    """The best trial of a run, and what an evaluation there is expected to give; see `Optimizer.recommended`."""
    best = history.best
    known = _known(history, space, noisy=noisy)
    if best is None or not (config.repeats and known.noisy):
        return best, math.nan if best is None else best.value
    with blas_threads(config.threads), np.errstate(all="ignore"):
        values = expected(known, space.domain, memory.state, config)
    if values is None or not np.isfinite(values).all():
        return best, best.value
    i = int(np.where(known.allowed, values, np.inf).argmin())
    return history.of("done")[i], history.sign * float(values[i])


def _known(history: History, space: Box | Frame, *, noisy: bool | None) -> Known:
    done = history.of("done")
    n_constraints = max((len(trial.constraints) for trial in done), default=0)
    unknown = (np.nan,) * n_constraints  # of earlier evaluations, x0 and y0
    guided = [trial for trial in history.all if "predicted" in trial.info]
    lately = [trial.status == "failed" for trial in history.all if trial.status != "open"][-LATELY:]

    return Known(
        x=_in_ball(done, space),
        y=history.sign * np.array([trial.value for trial in done]),
        pending=_in_ball(history.of("open"), space),
        failed=_in_ball(history.of("failed"), space),
        noise=np.array([trial.std for trial in done]),
        constraints=np.array([trial.constraints or unknown for trial in done]).reshape(len(done), n_constraints),
        failed_lately=sum(lately) / max(len(lately), 1),
        exact=None if noisy is None else not noisy,
        surprises=np.array([history.sign * _surprise(trial) for trial in guided if trial.status == "done"]),
        n_unguided=len(history) - len(guided),
    )


def _surprise(trial: Trial) -> float:
    """By how many standard deviations the value lies above what was predicted."""
    sd = trial.info.get("predicted_sd", 0.0)
    return (trial.value - trial.info["predicted"]) / sd if sd > 0.0 else 0.0


def _in_ball(trials: list[Trial], space: Box | Frame) -> Array:  # -> (n, d)
    if not trials:
        return np.empty((0, space.domain.dim))
    return space.to_ball(np.stack([trial.x for trial in trials]))


def _framed(bounds: Bounds | Space, center: Any, region: Region) -> Box | Frame:  # noqa: ANN401 - checked there
    if isinstance(bounds, Mapping) or (isinstance(bounds, Sequence) and any(isinstance(b, Parameter) for b in bounds)):
        raise TypeError(
            "bounds must be (d, 2), a (low, high) per parameter, or a cylbo.Space: give other parameters names with "
            f"cylbo.Space(a=..., b=...), from a dict with cylbo.Space(**parameters); got {bounds!r}."
        )
    if not isinstance(bounds, Space):
        return Box(bounds, center, region)
    if region != "box":
        raise ValueError(f"region must be 'box' in a space of named parameters, got {region!r}.")
    return Frame(bounds, center)


def _checked_budget(seconds: float | None, memory: float | None, config: Config) -> Budget:
    return Budget(
        _checked_limit("max_suggest_seconds", seconds, config),
        _checked_limit("max_memory", memory, config),
    )


def _checked_limit(name: str, value: float | None, config: Config) -> float | None:
    if value is None:
        return None
    limit = as_float(value) if is_real(value) else math.nan
    if not limit > 0.0:
        raise ValueError(f"{name} must be a positive number or None, got {value!r}.")
    if config.learn is not fitted:
        raise ValueError(
            f"{name} needs a method that fits its hyperparameters, such as 'default'; {config.name!r} samples them."
        )
    return limit


def _checked_seed(seed: int | None) -> int:
    if seed is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if not is_integer(seed) or seed < 0:
        raise ValueError(f"seed must be a non-negative integer or None, got {seed!r}.")
    return int(seed)
