"""Calls by the thousand from a hostile caller: no error but the documented ones, and none that changes anything.

    python tests/fuzz.py --calls 20000 --seed 0 1 2 --progress

A session is one optimizer and all that is done to it, as random numbers choose. What is right is known beforehand,
because every argument is drawn as a good one or a bad one (`hostile.py`). A call with good ones must do what it says.
One with a bad one must be refused with a documented error and leave everything as it was, in memory and in the file. In
the end a twin that gets nothing but the accepted calls must have come to the same points, bit for bit.

What an object of the caller's own raises when it is looked at, in its `__float__` or `__repr__`, passes as it is; that
must not change anything either.
"""

import argparse
import contextlib
import copy
import dataclasses
import inspect
import json
import math
import os
import random
import signal
import sqlite3
import struct
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

import cylbo
from cylbo import Categorical, Integer, Real, Space
from cylbo.store.codec import memory_to_json
from cylbo.store.file import read
from hostile import (
    ACTS,
    BAD_CONSTRAINTS,
    BAD_COUNTS,
    BAD_FLAGS,
    BAD_IDS,
    BAD_METADATA,
    BAD_NAMES,
    BAD_OPTIONS,
    BAD_PARAMETERS,
    BAD_STD,
    BOXES,
    CELLS,
    ENDLESS,
    FINITE,
    FOREIGN,
    FOREIGN_SCRIPTS,
    GOOD_CONSTRAINT,
    GOOD_LIMITS,
    GOOD_METADATA,
    GOOD_PARAMETERS,
    GOOD_STD,
    HUGE,
    JSON_VALUES,
    METHODS,
    MORE,
    NO_NUMBERS,
    NOT_FINITE,
    REASONS,
    SPACES,
    Grumpy,
    GrumpyError,
    Interrupt,
)

MISTAKES = (ValueError, TypeError)  # in arguments
UNUSABLE = (*MISTAKES, cylbo.StorageError)  # or a file that cannot be used
NEVER = (cylbo.NotPositiveDefiniteError, cylbo.SamplingError, cylbo.OutOfTimeError)
STUCK_SECONDS = 120  # what takes milliseconds and has not ended by then never will


class WrongError(AssertionError):
    """What must not happen, happened."""


class Stuck(BaseException):
    """A call does not come back; no `except Exception` may stop this one."""


def require(truth, message):
    if not truth:
        raise WrongError(message)


# ---- what is known of a search space from outside


class Place:
    """A search space, its good points, and what may be asked there."""

    def __init__(self, rng, bounds=None):
        self.rng = rng
        self.bounds = rng.choice(BOXES + SPACES) if bounds is None else bounds
        self.named = isinstance(self.bounds, Space)
        if not self.named:
            self.low, self.high = np.array([[float(end) for end in pair] for pair in self.bounds]).T
        self.n_points = math.prod(map(_count, self.bounds.parameters.values())) if self.named else math.inf

    def wider(self):
        """A place that contains this one."""
        if self.named:
            name = f"more {len(self.bounds.parameters)}"
            return Place(self.rng, Space({**self.bounds.parameters, name: self.rng.choice(MORE)}))
        width, more = self.high - self.low, self.rng.choice([0.0, 0.01])
        return Place(self.rng, np.stack([self.low - more * width, self.high + 0.02 * width], -1))

    def point(self):
        """A random good one, as a caller would write it."""
        if self.named:
            return {name: self._value(p) for name, p in self.bounds.parameters.items()}
        x = [self.rng.uniform(a, b) for a, b in zip(self.low, self.high, strict=True)]
        return self.rng.choice([x, tuple(x), np.array(x)])

    def _value(self, p):
        if isinstance(p, Categorical):
            return self.rng.choice(p.choices)
        draw = self.rng.randint if isinstance(p, Integer) else self.rng.uniform
        values = np.array([draw(p.low, p.high) for _ in range(math.prod(p.shape))]).reshape(p.shape)
        return values if p.shape else values.item()

    def holds(self, trial, options):
        """Whether a trial lies where an optimizer with these options may ask for it."""
        if self.named:
            same_names = list(trial.params) == list(self.bounds.parameters)
            return same_names and all(_has(p, trial.params[name]) for name, p in self.bounds.parameters.items())
        x = trial.x
        if x.dtype != np.float64 or x.shape != self.low.shape or not np.isfinite(x).all():
            return False
        if options.get("region", "box") == "box":
            return bool(((x >= self.low) & (x <= self.high)).all())
        width, center = self.high - self.low, options.get("center")
        middle = 0.5 * self.low + 0.5 * self.high if center is None else np.array(center, float)
        z, c = (2.0 * ((point - self.low) / width) - 1.0 for point in (x, middle))
        rounding = float((np.maximum(np.abs(self.low), np.abs(self.high)) / width).max())
        radius = float(np.linalg.norm(1.0 + np.abs(c)))
        return float(np.linalg.norm(z - c)) <= radius + 1e-9 + 8 * np.finfo(float).eps * len(x) * rounding


def _count(p):
    """How many values a parameter has."""
    if isinstance(p, Real):
        return math.inf
    return (len(p.choices) if isinstance(p, Categorical) else p.high - p.low + 1) ** math.prod(p.shape)


def _has(p, value):
    """Whether a parameter has this value, of the right type."""
    if isinstance(p, Categorical):
        return any(type(value) is type(choice) and value == choice for choice in p.choices)
    array = np.asarray(value)
    kind = "i" if isinstance(p, Integer) else "f"
    return array.shape == p.shape and array.dtype.kind == kind and bool(((array >= p.low) & (array <= p.high)).all())


def good_options(rng, place):
    """Arguments of an optimizer in that place, all of them good."""
    name = rng.choice(["default"] * 6 + list(METHODS))
    options = {
        "bounds": place.bounds,
        "seed": rng.choice([0, 1, 7, 2**70, np.int64(3), np.uint8(200), 123456, 3.0]),
        "method": "default" if name == "default" and rng.random() < 0.05 else METHODS[name],
    }
    if rng.random() < 0.3:
        options["center"] = place.point()
    if rng.random() < 0.3:
        points = [place.point() for _ in range(rng.randint(0, 3))]
        options["x0"] = points if points or place.named else np.empty((0, len(place.low)))
        if rng.random() < 0.6:
            options["y0"] = [rng.choice([0.0, 1.0, -2.5, 1e300, rng.gauss(0.0, 1.0)]) for _ in points]
    if not place.named and place.high.max() < 1e300 and rng.random() < 0.2:
        options["region"] = "ball"
    if rng.random() < 0.15:
        options["trials"] = earlier_trials(rng, place)
    for key, choices in (("direction", ["minimize", "maximize"]), ("noisy", [None, True, False, np.False_])):
        if rng.random() < 0.4:
            options[key] = rng.choice(choices)
    if name == "default" and rng.random() < 0.15:
        options["max_suggest_seconds"] = rng.choice(GOOD_LIMITS)
    if name == "default" and rng.random() < 0.15:
        options["max_memory"] = rng.choice(GOOD_LIMITS)
    return options


def earlier_trials(rng, place):
    """Closed trials of another run in that place."""
    other = cylbo.Optimizer(place.bounds)
    for _ in range(rng.randint(0, 3)):
        if rng.random() < 0.7:
            other.add(place.point(), rng.gauss(0.0, 1.0), std=rng.choice(GOOD_STD))
        else:
            other.add_failed(place.point(), "earlier")
    return other.trials


def spoiled(rng, options):
    """The same with one or two bad ones among them."""
    names = rng.sample(list(BAD_OPTIONS), rng.choice([1, 1, 1, 2]))
    return options | {name: rng.choice(BAD_OPTIONS[name]) for name in names}


def mutated(rng, tree):
    """A copy of a JSON tree with one of its nodes replaced, left out or doubled."""
    holder, key = [copy.deepcopy(tree)], 0
    root = holder
    while isinstance(holder[key], dict | list) and holder[key] and rng.random() < 0.85:
        holder = holder[key]
        key = rng.choice(list(holder)) if isinstance(holder, dict) else rng.randrange(len(holder))
    draw = rng.random()
    if draw < 0.7 or holder is root:
        holder[key] = rng.choice(JSON_VALUES)
    elif draw < 0.85:
        del holder[key]
    elif isinstance(holder, list):
        holder.append(holder[key])
    else:
        holder["other"] = holder[key]
    return root[0]


# ---- what is compared


def packed(number):
    """A float to the last bit: -0.0 is not 0.0, and NaN is NaN."""
    return struct.pack("d", number)


def number_in(told):
    """A number, or that in an array of one, as a float."""
    return float(told.item() if hasattr(told, "item") else told)


def bits(trial):
    """All that a trial is, to the last bit."""
    numbers = {name: packed(getattr(trial, name)) for name in ("value", "std", "seconds")}
    texts = {name: getattr(trial, name) for name in ("id", "status", "origin", "reason", "constraints")}
    kept = {"suggestion": json.dumps(trial.suggestion.to_json()), "metadata": json.dumps(trial.metadata)}
    return {"x": trial.x.tobytes(), "params": repr(trial.params)} | kept | numbers | texts


def every(trials):
    return [bits(trial) for trial in trials]


def as_kept(reason):
    """A reason as a trial holds it: half characters are written out, and what cannot be said is called so."""
    try:
        return str(reason).encode(errors="backslashreplace").decode()
    except (ValueError, GrumpyError):
        return f"{type(reason).__name__} that cannot be shown"


def contents(path):
    """What a run's files hold; an empty log, which SQLite leaves behind where it only reads, is as good as none."""
    files = {name: Path(f"{path}{name}") for name in ("", "-wal")}
    return {name: content for name, each in files.items() if each.is_file() and (content := each.read_bytes())}


def text_of(thing, spell=repr):
    try:
        return spell(thing)[:1000]
    except Exception as error:
        return f"<{type(thing).__name__} that raises {type(error).__name__}>"


def captured(function):
    """The variables that a lambda was made with: the arguments of a call."""
    variables = inspect.getclosurevars(function).nonlocals if inspect.isfunction(function) else {}
    return ", ".join(f"{name}={text_of(value)}" for name, value in variables.items() if name != "self")


@contextlib.contextmanager
def watched():
    """Ends a call that hangs."""

    def stop(*_):
        raise Stuck(f"no answer within {STUCK_SECONDS} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, STUCK_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


# ---- a session


class Session:
    """One optimizer in the hands of a hostile caller, and what it must be like by now."""

    def __init__(self, rng, folder, tally=None):
        self.rng, self.folder = rng, Path(folder)
        self.tally = Counter() if tally is None else tally  # of operations and what came of them
        self.calls = 0
        self.hostility = rng.choice([0.2, 1.0])  # runs that get far, and runs that hardly get anywhere
        self.values = rng.choice([FINITE, [rng.gauss(0.0, 1.0) for _ in range(20)]])
        self.errstate = rng.choice(["warn", "raise"])  # what the caller has set NumPy to do must not matter
        self.place = Place(rng)
        self.options = good_options(rng, self.place)
        self.path = self.folder / "run.db" if rng.random() < 0.5 else None
        self.is_closed = False
        self.n_constraints = None  # until the first value
        self.log = []  # of accepted calls, for the twin; None when there can be none
        self.opt = self.state = None
        given = copy.deepcopy(self.options)
        self.opt = self.call("Optimizer", lambda: cylbo.Optimizer(**given, storage=self.path), good=True)
        _scribble(given)
        self.options["seed"] = self.opt.seed
        self.model = every(self.opt.trials)
        self.check()

    # ---- what must be so

    def call(self, operation, function, *, good, refusals=MISTAKES, may_skip=False):
        """What the function returns; None if it refuses, which must be right and change nothing.

        `good` is whether the call must be accepted, None if that is not known; `refusals` are the errors it may raise.
        If it `may_skip` a point that waits, with a warning, the points that wait may change all the same.
        """
        self.calls += 1
        self.error = result = None
        try:
            with watched(), np.errstate(all=self.errstate), warnings.catch_warnings():
                if may_skip:
                    warnings.filterwarnings("ignore", r"(enqueue|ask)\(\) skipped a point")
                result = function()
        except (Exception, Interrupt, Stuck) as error:
            self.error = error
        self.tally[operation, "accepted" if self.error is None else type(self.error).__name__] += 1
        if self.error is None:
            require(good is not False, f"{operation} accepted bad arguments: {captured(function)}")
            return result
        name, text = type(self.error).__name__, text_of(self.error, str)
        if good or isinstance(self.error, NEVER) or not isinstance(self.error, (*refusals, GrumpyError)):
            raise WrongError(f"{operation} raised {name}: {text}; arguments: {captured(function)}") from self.error
        if may_skip:
            known = {trial.x.tobytes() for trial in self.opt.trials}
            left = [each for each in self.state["waiting"] if each[1] not in known or each in self._state()["waiting"]]
            changed = {"waiting": left} | ({"stored waiting": left} if self.path else {})
            self.state |= changed
        require(self._state() == self.state, f"{operation} was refused ({name}: {text}), and changed something")
        return None

    def _state(self):
        """Everything that is shown, everything that the next ask depends on, and everything in the file."""
        opt = self.opt
        if opt is None:
            return None
        state = {
            "trials": every(opt.trials),
            "best": None if opt.best is None else opt.best.id,
            "memory": json.dumps(memory_to_json(opt._memory)),
            "queue": [x.tobytes() for x in opt._given],
            "waiting": [(i, x.tobytes()) for i, x in opt._waiting],
            "seed": opt.seed,
        }
        if self.path is None:
            return state
        header, _, trials, memory, waiting, _ = read(self.path)
        stored = {"stored": every(trials), "stored waiting": [(i, x.tobytes()) for i, x in waiting]}
        return state | {"header": header, "stored memory": json.dumps(memory_to_json(memory)), **stored}

    def check(self, *, changed=True):
        """What is in memory is what was told, and so is what is in the file."""
        before, self.state = self.state, self._state()
        require(changed or self.state == before, "a call that only looks changed something")
        require(self.state["trials"] == self.model, "the trials are not what was asked and told")
        if self.path is not None:
            require(every(cylbo.load(self.path).trials) == self.model, "the file is not what was asked and told")
            for name in ("memory", "waiting"):
                require(self.state[f"stored {name}"] == self.state[name], "the file would go on otherwise")
        opt = self.opt
        sign = -1.0 if opt.direction == "maximize" else 1.0
        feasible = [t for t in opt.trials if t.status == "done" and all(c <= 0 for c in t.constraints)]
        if self._is_noisy() and feasible:
            require(opt.best.id in [t.id for t in feasible], "the best trial is none that counts")
        else:
            best = min(feasible, key=lambda t: (sign * t.value, t.id), default=None)
            require(self.state["best"] == (None if best is None else best.id), "the best trial has not the best value")

    def _is_noisy(self):
        """Whether values are known to be noisy; then the model says which is the best."""
        if self.opt.noisy is not None:
            return self.opt.noisy
        done = [t for t in self.opt.trials if t.status == "done"]
        outcomes = {(t.x.tobytes(), t.value) for t in done}
        return any(t.std > 0 for t in done) or len(outcomes) > len({x for x, _ in outcomes})

    def _draw(self, good, bad, share):
        """One of these, and whether it is a good one."""
        is_good = self.rng.random() >= share * self.hostility
        return self.rng.choice(good if is_good else bad), is_good

    # ---- ask, tell, fail, look

    def ask(self):
        counts = [None] * 6 + [1, 2, 3.0, np.int64(2)] + [10**9, HUGE] * (self.place.n_points < 20)
        n, is_good = self._draw(counts, BAD_COUNTS, 0.25)
        known = {t.x.tobytes() for t in self.opt.trials if t.status != "cancelled"}
        refusals = (cylbo.StorageError,) if self.is_closed else ()
        if is_exhausted := len(known) >= self.place.n_points:
            refusals = (cylbo.SpaceExhaustedError, cylbo.StorageError)
        # A point that waits may be skipped, or evaluated again in a space that has no other one
        may_wait = bool(self.opt._waiting) and (is_exhausted or self.is_closed)
        asked = self.call(
            "ask" if n is None else "ask(n)",
            lambda: self.opt.ask() if n is None else self.opt.ask(n),
            good=None if is_good and may_wait else is_good and not self.is_closed and not is_exhausted,
            refusals=refusals if is_good else MISTAKES,
            may_skip=True,
        )
        if asked is None:
            return
        batch = [asked] if n is None else asked
        require(len(batch) > 0, "a batch is empty")
        for trial in batch:
            require(trial.status == "open" and trial.id == len(self.model), "a new trial is not the next")
            is_right = self.place.holds(trial, self.options)
            require(is_right, f"a point lies where none may: {trial.x}, {trial.params}")
            is_new = trial.x.tobytes() not in known
            may_repeat = trial.origin in ("repeated", "given", "enqueued")
            require(is_new or may_repeat, f"a point was asked for twice ({trial.origin})")
            known.add(trial.x.tobytes())
            self.model.append(bits(trial))
        is_whole = n is None or len(batch) == n or len(known) >= self.place.n_points
        require(is_whole, "a batch ended before the space did")
        self._note("ask", None if n is None else len(batch))
        self.check()

    def tell(self):
        if not self.opt.history.of("open") and self.rng.random() < 0.7:  # there is little to tell
            self.ask()
            return
        trial, kind = self._trial()
        value, is_value = self._draw(self.values, NO_NUMBERS + NOT_FINITE, 0.25)
        std, is_std = self._draw(GOOD_STD, BAD_STD, 0.1)
        constraints, are_constraints = self._constraints()
        is_good = is_value and is_std and are_constraints
        metadata, is_metadata = self._draw(GOOD_METADATA, BAD_METADATA, 0.1)
        is_good = is_good and is_metadata
        told = self.call(
            "tell",
            lambda: self.opt.tell(trial, value, std=std, constraints=constraints(), metadata=metadata),
            good=is_good and kind == "open" and not self.is_closed,
            refusals=self._refusals(kind, is_good),
        )
        if told is None:
            return
        kept = tuple(number_in(c) for c in constraints() or ())
        self.n_constraints = len(kept)
        sd = math.nan if std is None else number_in(std)
        about = json.dumps(told.metadata)
        outcome = {"status": "done", "value": packed(number_in(value)), "std": packed(sd), "constraints": kept}
        self._close(told, **outcome, metadata=about)
        self._note("tell", told.id, number_in(value), std, kept, metadata)

    def fail(self):
        (trial, kind), reason = self._trial(), self.rng.choice(REASONS)
        failed = self.call(
            "fail",
            lambda: self.opt.fail(trial, reason),
            good=kind == "open" and not self.is_closed,
            refusals=self._refusals(kind, True),
        )
        if failed is not None:
            self._close(failed, status="failed", reason=as_kept(reason))
            self._note("fail", failed.id, reason)

    def cancel(self):
        trial, kind = self._trial()
        cancelled = self.call(
            "cancel",
            lambda: self.opt.cancel(trial),
            good=kind == "open" and not self.is_closed,
            refusals=self._refusals(kind, True),
        )
        if cancelled is not None:
            self._close(cancelled, status="cancelled")
            self._note("cancel", cancelled.id)

    def add(self):
        """An evaluation that nobody asked for, or a failure."""
        point, is_point = self._point()
        refusals = (cylbo.StorageError,) if self.is_closed else ()
        if self.rng.random() < 0.3:
            reason = self.rng.choice(REASONS)
            failed = self.call(
                "add_failed",
                lambda: self.opt.add_failed(point, reason),
                good=is_point and not self.is_closed,
                refusals=refusals if is_point else MISTAKES,
            )
            if failed is not None:
                self._added(failed, "add_failed", reason)
            return
        value, is_value = self._draw(self.values, NO_NUMBERS + NOT_FINITE, 0.25)
        constraints, are_constraints = self._constraints()
        is_good = is_point and is_value and are_constraints
        told = constraints() if are_constraints else None
        told = None if told is None else tuple(told)
        added = self.call(
            "add",
            lambda: self.opt.add(point, value, constraints=told if are_constraints else constraints()),
            good=is_good and not self.is_closed,
            refusals=refusals if is_good else MISTAKES,
        )
        if added is not None:
            self.n_constraints = len(added.constraints)
            self._added(added, "add", added.value, added.constraints)

    def _added(self, trial, what, *arguments):
        require(trial.id == len(self.model) and trial.origin == "added", "an added trial is not the next")
        require(self.place.holds(trial, self.options), f"a point was added that lies where none may: {trial.x}")
        self.model.append(bits(trial))
        self._note(what, trial.x.copy() if trial.params is None else trial.params, *arguments)
        self.check()

    def enqueue(self):
        point, is_good = self._point()
        before = len(self.opt._waiting)
        known = len(self.opt.trials)
        self.call(
            "enqueue",
            lambda: self.opt.enqueue(point),
            good=None if is_good and self.is_closed else is_good,
            refusals=(cylbo.StorageError,) if is_good else MISTAKES,
            may_skip=True,
        )
        require(len(self.opt.trials) == known, "a point that waits is a trial")
        require(is_good or len(self.opt._waiting) == before, "a bad point waits")
        if self.error is None:
            if len(self.opt._waiting) > before:
                x = self.opt._waiting[-1].x
                self._note("enqueue", self.opt.frame.params(x) if self.place.named else x.copy())
            self.check()

    def _point(self):
        """A point of the place, or none; and which."""
        if self.rng.random() >= 0.3 * self.hostility:
            return self.place.point(), True
        if self.place.named:
            bad = [None, 3, "x", [0.5], {"no such name": 1}, Grumpy(), {"p": Grumpy()}, [{}]]
            return self.rng.choice(bad), False
        n = len(self.place.low)
        bad = [None, "x", [math.nan] * n, [1e300] * n, [0.5] * (n + 1), [[0.5] * n], {}, [None] * n, Grumpy(), ENDLESS]
        return self.rng.choice(bad), False

    def look(self):
        looks = {
            "health": lambda: str(self.opt.health()),
            "best": lambda: repr(self.opt.best),
            "recommended": self.opt.recommended,
            "trials": self._vandalise,
            "pending": lambda: [repr(trial) for trial in self.opt.pending],
            "repr": lambda: repr(self.opt),
        }
        what = self.rng.choice(list(looks))
        self.call(what, looks[what], good=True)
        self.check(changed=False)

    def _vandalise(self):
        """What is handed out is the caller's to change, or cannot be changed."""
        trials = self.opt.trials
        for trial in trials:
            with contextlib.suppress(ValueError):
                trial.x[:] = 0.0
            with contextlib.suppress(dataclasses.FrozenInstanceError):
                trial.value = 0.0
        trials.clear()

    def _trial(self):
        """A trial or something else in its place, and which: open, closed or unknown."""
        rng, trials = self.rng, self.opt.trials
        bad = 0.15 * self.hostility
        kind = rng.choices(["open", "closed", "unknown"], [1.0 - 2.0 * bad, bad, bad])[0]
        wanted = [t for t in trials if (t.status == "open") == (kind == "open")]
        if kind == "unknown" or not wanted:
            return self._unknown(), "unknown"
        trial = rng.choice(wanted)
        snapshot = dataclasses.replace(trial, status="open", value=math.nan)
        return rng.choice([trial, snapshot, trial.id, np.int64(trial.id), copy.copy(trial), copy.deepcopy(trial)]), kind

    def _unknown(self):
        trials = self.opt.trials
        if not trials or self.rng.random() < 0.7:
            return self.rng.choice([*BAD_IDS, len(trials)])
        trial = self.rng.choice(trials)
        x = trial.x
        points = [
            None,
            0.0,
            Grumpy(),
            x[None],
            x + np.nan,
            np.append(x, 0.0),
            np.nextafter(x, 9e307),
            x.astype(str)[:0],
        ]
        changes = [{"x": point} for point in points] + [{"id": i} for i in (len(trials), -1, None, "0", Grumpy())]
        return dataclasses.replace(trial, **self.rng.choice(changes))

    def _refusals(self, kind, rest_is_good):
        if kind == "unknown":
            return (cylbo.UnknownTrialError,)
        if not rest_is_good:
            return MISTAKES
        return (cylbo.TrialClosedError,) if kind == "closed" else (cylbo.StorageError,)

    def _constraints(self):
        """Constraints, anew with every call for some can be read once; and whether they are good."""
        rng, m = self.rng, self.n_constraints
        if rng.random() < 0.15 * self.hostility:
            # The first to come say how many there are
            others = [] if m is None else [[0.0] * (m + 1), [0.0] * (m + 7), [0.0] * (m - 1) if m else [1.0]]
            bad = rng.choice(BAD_CONSTRAINTS + 3 * others)
            return rng.choice([lambda: bad, lambda: (float(Grumpy()) for _ in range(3))]), False
        told = tuple(rng.choice(GOOD_CONSTRAINT) for _ in range(rng.choice([0, 0, 0, 1, 2]) if m is None else m))
        forms = [
            lambda: told,
            lambda: list(told),
            lambda: iter(told),
            lambda: (c for c in told),
            lambda: dict(enumerate(told)).values(),
        ]
        return rng.choice(forms if told else [*forms, lambda: None]), True

    def _close(self, trial, **outcome):
        require(self.model[trial.id]["status"] == "open", "a trial was closed that was not open")
        self.model[trial.id] |= outcome
        require(bits(trial) == self.model[trial.id], "what comes back is not what was told")
        self.check()

    def _note(self, *call):
        if self.log is not None:
            self.log.append(call)

    # ---- close, and go on

    def close(self):
        for _ in range(self.rng.randint(1, 2)):
            self.call("close", self.opt.close, good=True)
        self.is_closed = self.path is not None
        self.check(changed=False)

    def go_on(self):
        """With the file: as another run it is refused, and as the same one everything is there."""
        if self.path is None:
            return
        if not self.is_closed:
            same = {**self.options, "storage": self.path, "resume": True}
            self.call("resume", lambda: cylbo.Optimizer(**same), good=False, refusals=(cylbo.StorageError,))
            return
        if self.rng.random() < 0.5:
            other = self._other_run()
            with self._untouched(self.path):
                self.call("resume", lambda: _let_go(cylbo.Optimizer(**other)), good=False, refusals=UNUSABLE)
        same = {**self.options, "storage": self.rng.choice([self.path, str(self.path)]), "resume": True}
        self.opt = self.call("resume", lambda: cylbo.Optimizer(**same), good=True)
        self.is_closed = False
        self.check(changed=False)
        if self.rng.random() < 0.3 and "region" not in self.options:  # a wider box may have a narrower ball
            self._widen()

    def _other_run(self):
        """Arguments that are not those of the run in the file."""
        same = {**self.options, "storage": self.path, "resume": True}
        if self.rng.random() < 0.3:
            return spoiled(self.rng, same)
        changes = [
            {"seed": self.opt.seed + 1},
            {"direction": "maximize" if self.opt.direction == "minimize" else "minimize"},
            {"noisy": not self.opt.noisy},  # None is what the run began with
            {"method": dataclasses.replace(self.opt.method, n_sobol=63)},
            {"bounds": [(-3, -2)] * 7, "center": None, "x0": None, "y0": None},
            {"resume": False},
            {"x0": [self.place.point() for _ in range(4)], "y0": None},
        ]
        return same | self.rng.choice(changes)

    def _widen(self):
        """Go on in a larger space: nothing that was told is lost. A twin would know nothing of the old space."""
        before, self.place, self.log = self.opt.trials, self.place.wider(), None
        self.options |= {"bounds": self.place.bounds, "center": None, "x0": None, "y0": None}
        self.opt.close()
        given = {**self.options, "storage": self.path, "resume": True}
        self.opt = self.call("widen", lambda: cylbo.Optimizer(**given), good=True)
        for old, new in zip(before, self.opt.trials, strict=True):
            names = old.params or {}
            kept = repr({name: new.params[name] for name in names}) == repr(names)
            require(kept and (self.place.named or np.array_equal(old.x, new.x)), "a point changed with the space")
            moved = dataclasses.replace(new, x=old.x, to_params=old.to_params)
            require(bits(moved) == bits(old), "a value changed with the space")
        self.model = every(self.opt.trials)
        self.check()

    @contextlib.contextmanager
    def _untouched(self, path):
        """Where a call is refused the file is the same afterwards, byte by byte, or still not there."""
        before = contents(path)
        yield
        require(self.error is None or contents(path) == before, f"a refused call changed {path.name}")

    # ---- what needs no optimizer

    def construct(self):
        """Another optimizer: from good arguments, or none."""
        rng, place, path = self.rng, Place(self.rng), self.folder / f"{self.calls}.db"
        options, is_good = good_options(rng, place), rng.random() < 0.2
        if not is_good:
            options = spoiled(rng, options)
        way = rng.choices(["memory", "file", "bad name", "no file", "unwritable"], [10, 6, 2, 1, 1])[0]
        options |= {
            "memory": dict,
            "file": lambda: {"storage": path, "resume": rng.choice([True, False])},
            "bad name": lambda: {"storage": self._bad_name()},
            "no file": lambda: {"resume": True},
            "unwritable": lambda: {"storage": path, "seed": HUGE},
        }[way]()
        is_good = is_good and way in ("memory", "file")
        opt = self.call("Optimizer", lambda: cylbo.Optimizer(**options), good=is_good, refusals=UNUSABLE)
        if opt is None:
            require(not path.exists(), "a refused optimizer left a file")
            return
        trial = self.call("ask", opt.ask, good=True)
        require(place.holds(trial, options), "the first point lies where none may")
        opt.close()

    def _bad_name(self):
        circle, pipe = self.folder / "circle", self.folder / "pipe"
        if not pipe.exists():
            circle.symlink_to(circle)
            os.mkfifo(pipe)
        name = self.rng.choice(BAD_NAMES)
        return str(self.folder / name) if isinstance(name, str) and name not in ("", ".") else name

    def minimize(self):
        """The loop around a function that may do anything."""
        rng, place, path = self.rng, Place(self.rng), self.folder / f"{self.calls}.db"
        budget, on_error = rng.randint(1, 7), rng.choice(["raise", "fail"])
        script, played, raised = [rng.choice(ACTS) for _ in range(budget)], [], []
        quits, quits_after = rng.choice([None] * 4 + [StopIteration, ValueError, Interrupt]), rng.randint(1, budget)

        def throw(kind):
            raised.append(kind("\ud800"))
            raise raised[-1]

        def fun(x):
            _scribble([x])  # its own to change
            kind, what = script[len(played)]
            played.append(kind)
            return throw(what) if kind in ("raises", "interrupts") else rng.choice(what)

        def callback(trial):
            if quits is not None and len(played) == quits_after:
                throw(quits)

        options = {**good_options(rng, place), "on_error": on_error, "callback": callback}
        options["budget"] = rng.choice([budget, float(budget)])
        if rng.random() < 0.4:
            options["storage"] = path
        if rng.random() < 0.3:
            bad = self._bad_loop({"fun": fun, **options})
            self.call("minimize", lambda: cylbo.minimize(**bad), good=False)
            require(not played and not path.exists(), "minimize began before its arguments were checked")
            return
        anything = (Exception, Interrupt)
        result = self.call("minimize", lambda: cylbo.minimize(fun, **options), good=None, refusals=anything)

        # What must have come of it, from what was played
        ends = {"wrong", "interrupts", *(["raises"] if on_error == "raise" else [])}
        is_over = played[-1] in ends or (quits is not None and len(played) == quits_after)
        require(not ends & set(played[:-1]), "minimize went on after what should have ended it")
        by_itself = len(played) == budget or place.n_points < math.inf
        require(is_over or by_itself, f"minimize ended with {text_of(self.error)}")
        if played[-1] == "wrong":
            require(isinstance(self.error, (*MISTAKES, GrumpyError)), f"a wrong value gave {text_of(self.error)}")
            said = isinstance(self.error, GrumpyError) or "the objective must return" in str(self.error)
            require(said, f"a wrong value gave {text_of(self.error)}")
        elif is_over and not isinstance(raised[-1], StopIteration if played[-1] not in ends else ()):
            require(self.error is raised[-1], f"minimize ended with {text_of(self.error)}, not {text_of(raised[-1])}")
        else:
            require(self.error is None, f"minimize ended with {text_of(self.error)}")
        result = result or self.error.result
        is_open = played[-1] in ends
        require(result.nfev == len(played) - is_open, "evaluations were not counted")
        finished = [kind == "gives" for kind in played[: result.nfev]]
        require([math.isfinite(value) for value in result.func_vals] == finished, "values were lost, or made up")
        require(all(place.holds(trial, options) for trial in result.trials), "a point lies where none may")
        if "storage" in options:
            require(every(cylbo.load(path).trials) == every(result.trials), "the file is not what minimize returned")
            again = {name: options[name] for name in options if name not in ("budget", "on_error", "callback")}
            opt = self.call("resume", lambda: _let_go(cylbo.Optimizer(**again, resume=True)), good=True)
            require(every(opt.trials) == every(result.trials), "the run could not go on")

    def _bad_loop(self, options):
        name = self.rng.choice(["fun", "budget", "callback", "on_error", "progress", "resume", "others"])
        if name == "others":
            return spoiled(self.rng, options)
        no_function = [3, "raise!", b"raise", [], Grumpy(), np.zeros(2)]
        bad = {"budget": BAD_COUNTS, "progress": BAD_FLAGS, "resume": BAD_FLAGS}
        return options | {name: self.rng.choice(bad.get(name, no_function))}

    def load(self):
        """A file that may hold anything."""
        if self.rng.random() < 0.2:
            name = self._bad_name()
            self.call("load", lambda: cylbo.load(name), good=False, refusals=UNUSABLE)
            return
        path = self.folder / f"{self.calls}.db"
        self._damage(path)
        with self._untouched(path):
            result = self.call("load", lambda: cylbo.load(path), good=None, refusals=(cylbo.StorageError,))
        if result is not None:
            require([t.id for t in result.trials] == list(range(len(result.trials))), "trials are not numbered")
        same = {**self.options, "storage": path, "resume": True}
        with self._untouched(path):
            opt = self.call("resume", lambda: cylbo.Optimizer(**same), good=None, refusals=(cylbo.StorageError,))
        if opt is not None:
            trial = self.call("ask", opt.ask, good=None, refusals=(cylbo.SpaceExhaustedError,))
            require(trial is None or np.isfinite(trial.x).all(), "what is wrong in a file was asked for")
            opt.close()

    def _damage(self, path):
        """Make a file that is no run, or a copy of this one with something wrong in it."""
        rng = self.rng
        way = "foreign" if self.path is None else rng.choice(["foreign", "bytes", "bytes", "cell", "cell", "cell"])
        if way == "foreign":
            what = rng.choice(FOREIGN + FOREIGN_SCRIPTS)
            if isinstance(what, bytes):
                path.write_bytes(what)
                return
            with contextlib.closing(sqlite3.connect(path)) as db:
                db.executescript(what)
            return
        with contextlib.closing(sqlite3.connect(self.path)) as db, contextlib.closing(sqlite3.connect(path)) as twin:
            db.backup(twin)
        if way == "bytes":
            content = bytearray(path.read_bytes())
            if rng.random() < 0.3:
                del content[rng.randrange(1, len(content)) :]
            for _ in range(rng.choice([1, 1, 1, 10])):
                content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
            path.write_bytes(content)
            return
        with contextlib.closing(sqlite3.connect(path)) as db:
            table = rng.choice(["header", "trials", "memory"])
            found = db.execute(f"SELECT * FROM {table}")
            columns, rows = [name for name, *_ in found.description], found.fetchall()
            if not rows:
                return
            row = list(rng.choice(rows))
            i = rng.randrange(len(row))
            db.execute(f"DELETE FROM {table} WHERE {columns[0]} = ?", row[:1])
            is_json = columns[i] in ("json", "constraints", "info")
            row[i] = (
                json.dumps(mutated(rng, json.loads(row[i]))) if is_json and rng.random() < 0.7 else rng.choice(CELLS)
            )
            if rng.random() < 0.9:
                with contextlib.suppress(sqlite3.Error):  # what the schema forbids
                    db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
            db.commit()

    def space(self):
        """A parameter, or a space of them."""
        kind = self.rng.choice(list(GOOD_PARAMETERS))
        (arguments, options), is_good = self._draw(GOOD_PARAMETERS[kind], BAD_PARAMETERS[kind], 0.7)
        made = self.call(kind.__name__, lambda: kind(*arguments, **options), good=is_good)
        if made is not None:
            self._examine(made if kind is Space else Space(x=made))

    def from_json(self):
        """What `to_json` gave, with something wrong in it."""
        tree = mutated(self.rng, self.rng.choice(SPACES).to_json())
        made = self.call("from_json", lambda: Space.from_json(tree), good=None)
        if made is not None:
            self._examine(made)

    def _examine(self, space):
        """A space that was accepted can be shown and written down, and takes every point of it back."""
        again = Space.from_json(json.loads(json.dumps(space.to_json())))
        require(again == space and repr(again) == repr(space), f"{space} does not survive JSON")
        z = np.array([[self.rng.uniform(-1.0, 1.0) for _ in range(space.dim)], [-1.0] * space.dim, [1.0] * space.dim])
        for u in space.decode(z):
            require(np.array_equal(space.vector(space.params(u), "u"), u), f"{space} refuses its own point {u}")
            require((np.abs(space.encode(u[None])) <= 1.0 + 1e-9).all(), f"{space} loses its own point {u}")

    # ---- the end

    def finish(self):
        """A twin that gets what was accepted, and nothing else, comes to the same."""
        self.opt.close()
        if self.log is None or "max_suggest_seconds" in self.options:  # then points depend on the clock
            return
        twin = cylbo.Optimizer(**self.options)
        warnings.filterwarnings("ignore", r"ask\(\) skipped a point")
        for what, *arguments in self.log:
            if what == "tell":
                trial, value, std, constraints, metadata = arguments
                twin.tell(trial, value, std=std, constraints=constraints, metadata=metadata)
            elif what == "add":
                point, value, constraints = arguments
                twin.add(point, value, constraints=constraints)
            else:
                getattr(twin, what)(*arguments)
        ours, theirs = ([one | {"seconds": None} for one in every(opt.trials)] for opt in (self.opt, twin))
        require(ours == theirs, "refused calls left a trace")


OPERATIONS = {
    "ask": 20, "tell": 35, "fail": 6, "cancel": 4, "add": 6, "enqueue": 6,
    "look": 6, "close": 3, "go_on": 8, "construct": 12, "minimize": 4, "load": 6,
    "space": 10, "from_json": 6,
}  # fmt: skip


def play(rng, folder, calls=None, tally=None):
    """A session of at least so many calls."""
    session = Session(rng, folder, tally)
    calls = rng.choice([20, 50, 100]) if calls is None else calls
    while session.calls < calls:
        (operation,) = rng.choices(list(OPERATIONS), list(OPERATIONS.values()))
        getattr(session, operation)()
    session.finish()
    return session


def _let_go(opt):
    opt.close()
    return opt


def _scribble(given):
    """Change what was handed over: whoever took it has a copy."""
    for value in given.values() if isinstance(given, dict) else given:
        if isinstance(value, np.ndarray):
            value.fill(0)
        elif isinstance(value, dict | list):
            value.clear()


# ---- in full


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=20_000, help="in all")
    parser.add_argument("--seed", type=int, nargs="+", default=[0], help="each gets its share of the calls")
    parser.add_argument("--session", type=int, nargs="+", help="only these, as a failure named them")
    parser.add_argument("--progress", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("error")  # as in the tests
    tally, failed = Counter(), []
    for session in options.session or _sessions(options, tally):
        with tempfile.TemporaryDirectory() as folder:
            try:
                play(random.Random(session), folder, tally=tally)
            except Exception:
                failed.append(str(session))
                traceback.print_exc()
                print(f"\nagain: python tests/fuzz.py --session {session}\n", file=sys.stderr, flush=True)
    print(_table(tally))
    print(f"\n{len(failed)} sessions went wrong" + f"; again: --session {' '.join(failed)}" * bool(failed))
    return bool(failed)


def _sessions(options, tally):
    for i, seed in enumerate(options.seed, 1):
        rng = random.Random(seed)
        while tally.total() < options.calls * i / len(options.seed):
            if options.progress:
                print(f"\rseed {seed}: {tally.total()} calls of {options.calls}", end="", file=sys.stderr, flush=True)
            yield rng.getrandbits(32)
    if options.progress:
        print(file=sys.stderr)


def _table(tally):
    """Calls by operation, and what came of them."""
    lines = [f"{'operation':12}{'calls':>8}{'accepted':>10}{'refused':>9}"]
    for operation in [*sorted({operation for operation, _ in tally}), "all"]:
        outcomes = Counter()
        for (name, outcome), count in tally.items():
            if operation in (name, "all"):
                outcomes[outcome] += count
        accepted, calls = outcomes.pop("accepted", 0), outcomes.total()
        refusals = ", ".join(f"{name} {count}" for name, count in outcomes.most_common())
        lines.append(f"{operation:12}{calls + accepted:8}{accepted:10}{calls:9}  {refusals}")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
