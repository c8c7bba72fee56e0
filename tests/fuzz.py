"""Calls by the thousand from a hostile caller: no error but the documented ones, and none that changes anything.

    python tests/fuzz.py --calls 20000 --seed 0 1 2 --progress

A session is one optimizer and all that is done to it, as random numbers choose. What is right is known beforehand:
every argument is drawn as a good one or a bad one. A call with good ones must do what it says, one with a bad one must
be refused with a documented error and leave everything as it was, in memory and in the file. In the end a twin that
gets the accepted calls only must have come to the same points, bit for bit.

What an object of the caller's own raises when it is looked at (its `__float__`, its `__repr__`) may pass: that is a
`GrumpyError`.
"""
# ruff: noqa: E501 - long rows of hostile values are easier to read than long columns

import argparse
import contextlib
import copy
import dataclasses
import inspect
import json
import math
import numbers
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
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

import cylbo
from cylbo import Boolean, Categorical, Integer, Real, Space
from cylbo.storage import _memory_to_json, read

QUICK = {
    "n_sobol": 64, "n_spray": 10, "sweeps": 2, "first_sweeps": 3, "max_steps": 4, "fit_steps": 4, "warm_steps": 2,
    "n_starts": 3,
}  # fmt: skip
# Few evaluations until the fits go on from the last ones, and until noise is suspected
GROWTH = {"refit_until": 5, "refit_growth": 0.6, "warm_growth": 0.2}
METHODS = {name: dataclasses.replace(method, **QUICK, **GROWTH) for name, method in cylbo.METHODS.items()}

DOCUMENTED = (ValueError, TypeError, cylbo.CylboError)
NEVER = (cylbo.NotPositiveDefiniteError, cylbo.SamplingError, cylbo.OutOfTimeError)
STUCK_SECONDS = 120  # no call of these takes a second; a loop that never ends takes this long to be found


class Wrong(AssertionError):  # noqa: N818
    """What must not happen, happened."""


class Stuck(BaseException):
    """A call that does not come back; no `except Exception` may stop it."""


class GrumpyError(Exception):
    """What a grumpy object says."""


class Interrupt(BaseException):
    """Like Ctrl-C."""


def require(truth, message):
    if not truth:
        raise Wrong(message)


# ---- hostile objects


class Grumpy:
    """Raises at every look."""

    def _refuse(self, *_, **__):
        raise GrumpyError

    __float__ = __int__ = __index__ = __bool__ = __len__ = __iter__ = __getitem__ = __contains__ = _refuse
    __repr__ = __str__ = __eq__ = __hash__ = __lt__ = __le__ = __gt__ = __ge__ = __array__ = __fspath__ = _refuse


class GrumpyNumber(Grumpy):
    """Says that it is an integer, and raises."""


class Number:
    """Says that it is a real number; `float` gets whatever is in it."""

    def __init__(self, content):
        self.content = content

    def __float__(self):
        return self.content


numbers.Integral.register(GrumpyNumber)
numbers.Real.register(Number)
HUGE = 10**5000  # which Python refuses to spell
DEEP: list[Any] = []
DEEP.append(DEEP)

NO_NUMBERS = [
    None, "1.0", "", b"1", 1j, np.complex64(1), Decimal(1), [1.0], (1.0,), [], {}, {1.0}, range(3), np.array([1.0]),
    np.zeros((2, 3)), np.empty(0), np.array("1"), np.array(None), np.ma.masked, np.datetime64("2020-01-01"),
    np.timedelta64(1, "s"), np.bool_(True), lambda: 1.0, object(), float, ..., NotImplemented, memoryview(b"1"), DEEP,
    Number("1"), Number(None), Grumpy(), GrumpyNumber(), Exception("no"),
]  # fmt: skip
NOT_FINITE = [
    math.nan, math.inf, -math.inf, np.float32("nan"), np.float16("inf"), np.array(-np.inf), np.longdouble("inf"), 10**400,
    -(10**400), HUGE, -HUGE, Fraction(10**400), Number(math.nan),
]  # fmt: skip
FINITE = [
    0, 1, -1, 0.5, -0.25, 3.0, -0.0, 1e-3, 7, -2.5, 100.0, True, 10**20, -(10**300), 1e308, -1.7e308, 5e-324, 1e-300, math.pi,
    Fraction(1, 3), np.float32(1.5), np.float16(-2), np.int8(-5), np.uint64(2**64 - 1), np.longdouble("2.5"), np.array(3.0),
    np.array(2), np.array(Fraction(1, 7), object), np.ma.array(1.25), Number(2.5),
]  # fmt: skip
GOOD_STD = [None, None, None, 0, 0.1, -0.0, 1e300, 5e-324, np.float32(0.5), Fraction(1, 3), 10**10, np.array(0.2)]
BAD_STD = [-1, -5e-324, *(value for value in NO_NUMBERS if value is not None), *NOT_FINITE]

BAD_IDS = [
    -1, 10**6, HUGE, -HUGE, True, False, 0.0, 1.0, math.nan, "0", b"0", None, [0], (0,), {0}, np.array([0]), np.array(0), 1j,
    Decimal(0), Fraction(0), slice(0), object(), cylbo.Trial, ..., Grumpy(), GrumpyNumber(), np.float64(0),
]  # fmt: skip
REASONS = [
    "", "no", None, b"\xff", "\ud800 half", "\0", "x" * 100_000, "'; DROP TABLE trials; --", 3.5, ValueError("why"), [1, "\udfff"],
    "é \U0001f600", object(), np.zeros(3), DEEP, math.nan, HUGE, Grumpy(),
]  # fmt: skip
BAD_COUNTS = [
    0, -1, -HUGE, True, False, 1.0, 2.5, math.nan, math.inf, "2", b"2", [], (1,), np.array(2), Fraction(2), Decimal(2), 1j,
    object(), Grumpy(), GrumpyNumber(),
]  # fmt: skip

# ---- good and bad arguments of an optimizer

BOXES = [
    [(-1.0, 2.0), (10.0, 30.0)], [(0, 1)], np.array([[-1, 1]] * 3, np.int8), [(0.0, 1e-300)], [(-8e307, 8e307)] * 2,
    [(1e15, 1e15 + 1e8), (-1e-5, 1e12)], [[Fraction(-1, 3), 0], [0, 10**25]], np.array([[-1, 1]] * 4, np.float16),
    ((-5.0, -4.0), (1.0, 1.0 + 1e-6)),
]  # fmt: skip
SPACES = [
    Space(flag=Boolean(), which=Categorical(["a", "b", None])),
    Space(n=Integer(-1, 2)),
    Space({"": Real(1e-300, 1e300, log=True), "\ud800": Categorical([1, 2.5, "1", math.inf]), "class": Real(-1, 1)}),
    Space(n=Integer(-(2**53), 2**53), m=Integer(1, 1000, log=True), w=Real(0, 1, shape=(2, 1)), flag=Boolean()),
    Space(w=Real(0.0, 5e-300), b=Real(1e-310, 1.0, log=True, default=1e-310)),
    Space(k=Integer(0, 1, shape=3, default=1), which=Categorical(range(4), default=2), flag=Boolean(default=True)),
]  # fmt: skip
BAD_BOUNDS = [
    None, 3, "ab", b"ab", [], [[]], [()], [(0, 0)], [(1, 0)], [(0, math.nan)], [(-math.inf, 0)], [(0, 1, 2)], [(0,)], [0, 1],
    [(0, 1), (0,)], [("0", "1")], [(0, 1j)], [(0, None)], [(-1e308, 1e308)], [(0, 10**400)], [(1, 1 + 1e-12)], [(0.0, 5e-324)],
    [(0.0, 1e-320), (0, 1)], {"a": (0, 1)}, {(0, 1)}, iter([(0, 1)]), np.zeros((2, 2, 2)), np.zeros((0, 2)), [np.datetime64("2020")] * 2,
    np.ma.array([[0.0, 1.0]], mask=[[False, True]]), Space, Real(0, 1), {"x": Real(0, 1)}, DEEP, [[DEEP, 1]], object(), Grumpy(),
    [Grumpy()], [(0, Grumpy())], [(0, GrumpyNumber())], [(0, Decimal(1))],
]  # fmt: skip
BAD_OPTIONS = {
    "bounds": BAD_BOUNDS,
    "seed": [-1, 1.0, "0", True, [1], (), math.nan, 1j, -HUGE, np.array(1), Decimal(1), Grumpy(), GrumpyNumber(), object],
    "method": ["", "Default", "newton", b"default", None, 1, cylbo.Config, {}, ["default"], Grumpy(), object()],
    "region": ["sphere", "", None, 1, b"box", ["box"], np.array(["box", "ball"]), Grumpy()],
    "direction": ["min", "", None, 1, b"minimize", ["minimize"], np.array(["minimize", "maximize"]), Grumpy()],
    "noisy": [0, 1, "no", np.bool_(True), [], math.nan, Grumpy()],
    "max_suggest_seconds": [0, -1.0, math.nan, -math.inf, True, "1", [1], 1j, Decimal(1), -HUGE, Grumpy(), object()],
    "max_memory": [0, -1, math.nan, -(10**400), False, "1 GB", [1], 1j, Decimal(1), -HUGE, Grumpy(), object()],
    "y0": [[math.nan], [[1.0]], "y", [1.0] * 9, 3, [None], [1j], DEEP, [Grumpy()], np.ma.masked_all(1), {}],
    "center": [
        "middle", 3, [], [math.nan] * 2, [[0.5]], [1e300] * 7, [None], {}, {"a": 1}, {1: 2}, [1j], DEEP, object(), Grumpy(), [Grumpy()], set(),
    ],
    "x0": [
        3, "x", [[]], [[math.nan]], [["a"]], [[0.5] * 9], [{}], [{"a": 1}], {"a": [1]}, [None], [1.0], [[None]], [[1j]], object(), Grumpy(),
        [Grumpy()], [[Grumpy()]], DEEP, np.zeros((1, 1, 1)), [{1: Grumpy()}],
    ],
}  # fmt: skip
BAD_NAMES = [
    3,
    b"bytes",
    object(),
    1.5,
    "nul\0",
    "\ud800",
    "x" * 5000,
    "missing/run.db",
    "",
    ".",
    "circle",
    "circle/run.db",
    "pipe",
    Grumpy(),
]


# ---- what a function may do, and what may lie in a file


class SlotsError(Exception):
    """Takes no attributes."""

    __slots__ = ()


class MuteError(Exception):
    """Cannot be shown."""

    def __str__(self):
        raise GrumpyError


ACTS: list[tuple[str, Any]] = [
    *[("gives", FINITE)] * 12,
    *[("gives", [{"value": 1.0}, {"value": Fraction(1, 2), "std": 0.5}, {"value": 3, "std": None, "constraints": None}])] * 3,
    *[("nothing", NOT_FINITE)] * 3,
    ("nothing", [{"value": math.nan}, {"value": 1.0, "std": math.inf}, {"value": 1.0, "constraints": [math.nan]}]),
    ("wrong", NO_NUMBERS),
    ("wrong", [{"values": 1.0}, {"value": 1.0, "trial": 0}, {"value": 1.0, 3: 4}, {"value": 1.0, "std": -1.0}, {"value": "1"}, {"std": 1.0}]),
    *[("raises", error) for error in (ValueError("no"), ZeroDivisionError(), GrumpyError(), StopIteration(3), MuteError("no"))],
    *[("raises", error) for error in (cylbo.SpaceExhaustedError("no"), cylbo.StorageError("no"), OSError("\ud800"), MemoryError())],
    ("interrupts", Interrupt()),
]  # fmt: skip

JSON_VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 3, 1.5, -0.0, 1e308, math.nan, math.inf, 10**30, 10**400, 2**60, "", "real", "a", "\ud800", "box",
    "maximize", [], {}, [1], [[]], [[1, 2]], [True, False], {"kind": "real"}, {"kind": "real", "low": 0, "high": 1}, [None, None], [1e300] * 3,
]  # fmt: skip
CELLS: list[Any] = [
    None, 0, -1, 3, 2**62, 1.5, math.inf, "", "x", "null", "[]", "{}", "[", "[" * 100_000, "1" * 5000, "NaN", "0", '"a"', b"", b"\0" * 8,
    b"\xff" * 8, b"\xff" * 16, "done", "open", "failed",
]  # fmt: skip

PARAMETERS: dict[type, tuple[list[Any], list[Any]]] = {
    Real: (
        [((0, 1), {}), ((-1e300, 1e300), {}), ((Fraction(1, 3), np.float32(1)), {"shape": 2}), ((1e-300, 1e300), {"log": True}),
         ((np.int8(-1), 10**20), {"shape": (2, 3)}), ((5e-324, 1.0), {"log": 1, "shape": [np.int64(1)]}), ((0.0, 1e-300), {"shape": []}),
         ((0, 1), {"default": 0}), ((0, 1), {"shape": 2, "default": np.float32(0.5)}), ((1, 9), {"log": True, "shape": 2, "default": [1, 9]})],
        [((a, b), {}) for a, b in [("0", 1), (None, 1), (math.nan, 1), (0, math.inf), (False, True), (0, 1j), (Decimal(0), 1), (0, 10**400),
         (1, 0), (1, 1), (0.0, 5e-324), (1, 1 + 1e-12), (-1e308, 1e308), (Grumpy(), 1), (GrumpyNumber(), 1), (0, HUGE), ([0], [1]),
         (np.array(0.0), 1), (Number(0.0), 1), (0, Number("1"))]]
        + [((a, b), {"log": True}) for a, b in [(0, 1), (-1, 1), (1, 1 + 1e-12), (5e-324, 1e-323), (1e-320, 1.1e-320)]]
        + [((0, 1), {"shape": shape}) for shape in [0, -1, 1.5, "ab", None, True, (2, 0), [[2]], 10**12, 10**30, (10**6, 10**6), np.array([2, 3]),
           Grumpy(), GrumpyNumber(), (2, True), {2}]]
        + [((0, 1), {"default": default}) for default in [2, math.nan, "0", [0.5], True, 1j, 10**400, HUGE, np.ma.masked, Grumpy(), object()]]
        + [((0, 1), {"shape": 2, "default": default}) for default in [7, [0.5], [0.5, 2.0], [[0.5, 0.5]], False, DEEP, np.zeros(3), {}]]
        + [((0, 1), {"log": Grumpy()}), ((), {}), ((0, 1, 2), {}), ((0,), {"high": 1, "width": 2})],
    ),
    Integer: (
        [((0, 1), {}), ((-(2**53), 2**53), {}), ((np.int8(1), np.uint64(9)), {"log": True}), ((1, 3), {"shape": (2, 2), "default": 3}),
         ((0, 9), {"default": np.int8(4)}), ((0, 9), {"default": 4.0})],
        [((a, b), {}) for a, b in [(0.0, 1), (0, 1.5), ("0", 1), (None, 1), (True, 2), (0, 2**54), (0, HUGE), (1, 0), (1, 1), (0, math.inf), (0, 1j),
         (Fraction(0), 1), (Grumpy(), 1), (0, GrumpyNumber()), ([0], 1)]]
        + [((0, 5), {"log": True}), ((0, 1), {"shape": 0}), ((0, 1), {"shape": 10**12}), ((0, 1), {"shape": "a"}), ((0, 1), {"log": Grumpy()}),
           ((0, 9), {"default": 0.5}), ((0, 9), {"default": "1"}), ((0, 9), {"default": 10}), ((0, 9), {"shape": 2, "default": [1, 1.5]})],
    ),
    Categorical: (
        [((["a", "b"],), {}), (((None, True, 0, 2.5, "x"),), {}), ((range(5),), {}), ((["\ud800", "\0"],), {}), (([math.inf, 1e308],), {}),
         ((["a", None],), {"default": None}), ((["a", "b"],), {"default": "b"}), ((["a", "b"],), {"default": ...})],
        [((choices,), {}) for choices in ["ab", [], ["a"], [1, 1], [1, True], [0, 0.0], [math.nan, 1], [np.float64(1), 2], [object(), 1], {1, 2}, None, 3,
         iter("ab"), {"a": 1, "b": 2}, [[1], [2]], [1j, 2], [b"a", "b"], Grumpy(), [Grumpy(), 1], b"ab", np.array([1, 2]), [Decimal(1), 2]]]
        + [((["a", "b"],), {"default": default}) for default in ["c", 0, ["a"], math.nan, b"a", object(), DEEP]]
        + [((), {}), ((["a", "b"], 2), {})],
    ),
    Space: (
        [(({"a": Real(0, 1)},), {}), ((), {"a": Boolean()}), (({"1 a": Real(0, 1)},), {"b": Integer(0, 3)}), ((None,), {"parameters": Boolean()})],
        [((parameters,), {}) for parameters in [None, 3, "a", [("a", Real(0, 1))], {}, {"a": 1}, {1: Real(0, 1)}, {"a": Real}, {"a": None}, Grumpy(),
         {"a": Grumpy()}, {None: Boolean()}, {"a": {"b": Real(0, 1)}}, {"a": (0, 1)}, Real(0, 1), {("a",): Boolean()}]]
        + [(({"a": Real(0, 1)},), {"a": Real(0, 1)}), ((), {}), ((), {"a": 3}), ((), {"a": Real(0, 1), "b": "Real"}), (({}, {}), {})],
    ),
}  # fmt: skip


def packed(number):
    """A float to the last bit: -0.0 is not 0.0, and NaN is NaN."""
    return struct.pack("d", number)


def bits(trials, *, seconds=True):
    """All that a trial is, to the last bit."""
    return [
        (
            t.id, t.x.tobytes(), packed(t.value), t.status, t.origin, t.reason, packed(t.std), t.constraints, json.dumps(dict(t.info)),
            repr(t.params), t.seconds if seconds else None,
        )
        for t in trials
    ]  # fmt: skip


def spelled(reason):
    """A reason as a file can hold it: half characters are written out, and what cannot be said is called so."""
    try:
        return str(reason).encode(errors="backslashreplace").decode()
    except (ValueError, GrumpyError):
        return f"{type(reason).__name__} that cannot be shown"


# ---- good arguments, and where a point may lie


class Place:
    """A search space with what is known of it from outside."""

    def __init__(self, rng, bounds=None):
        self.rng = rng
        self.bounds = rng.choice(BOXES + SPACES) if bounds is None else bounds
        self.named = isinstance(self.bounds, Space)
        if not self.named:
            self.low, self.high = np.array([[float(end) for end in pair] for pair in self.bounds]).T
        self.n_points = self._count()

    def _count(self):
        if not self.named:
            return math.inf
        count = 1
        for p in self.bounds.parameters.values():
            if isinstance(p, Real):
                return math.inf
            each = len(p.choices) if isinstance(p, Categorical) else p.high - p.low + 1
            count *= each ** math.prod(p.shape)
        return count

    def wider(self):
        """A place that contains this one."""
        if not self.named:
            low, high = 1.0 * self.low, 1.0 * self.high
            i = self.rng.randrange(len(low))
            low[i], high[i] = low[i] - 0.01 * (high[i] - low[i]), high[i] + 0.02 * (high[i] - low[i])
            return Place(self.rng, np.stack([low, high], -1))
        name = f"more {len(self.bounds.parameters)}"
        more = self.rng.choice(
            [Real(0, 1, default=0.25), Integer(1, 9, default=9), Categorical(["x", "z"], default="z")]
        )
        return Place(self.rng, Space({**self.bounds.parameters, name: more}))

    def point(self):
        """A random good one, as a caller would write it."""
        if not self.named:
            x = [self.rng.uniform(a, b) for a, b in zip(self.low, self.high, strict=True)]
            return self.rng.choice([x, tuple(x), np.array(x)])
        return {name: self._value(p) for name, p in self.bounds.parameters.items()}

    def _value(self, p):
        if isinstance(p, Categorical):
            return self.rng.choice(p.choices)
        draw = self.rng.randint if isinstance(p, Integer) else self.rng.uniform
        values = np.array([draw(p.low, p.high) for _ in range(math.prod(p.shape))]).reshape(p.shape)
        return values if p.shape else values.item()

    def holds(self, trial, center, region):
        """Whether a trial lies where it may."""
        if self.named:
            return self._holds_named(trial)
        x = trial.x
        if x.dtype != np.float64 or x.shape != self.low.shape or not np.isfinite(x).all():
            return False
        if region == "box":
            return bool(((x >= self.low) & (x <= self.high)).all())
        width = self.high - self.low
        middle = 0.5 * self.low + 0.5 * self.high if center is None else np.array(center, float)
        z, c = (2.0 * ((point - self.low) / width) - 1.0 for point in (x, middle))
        rounding = np.maximum(np.abs(self.low), np.abs(self.high)) / width
        slack = 1e-9 + 8 * np.finfo(float).eps * len(x) * float(rounding.max())
        return float(np.linalg.norm(z - c)) <= float(np.linalg.norm(1.0 + np.abs(c))) + slack

    def _holds_named(self, trial):
        if list(trial.params) != list(self.bounds.parameters):
            return False
        for name, p in self.bounds.parameters.items():
            value = trial.params[name]
            if isinstance(p, Categorical):
                if not any(type(value) is type(choice) and value == choice for choice in p.choices):
                    return False
            else:
                array = np.asarray(value)
                kind = "i" if isinstance(p, Integer) else "f"
                if (
                    array.shape != p.shape
                    or array.dtype.kind != kind
                    or not ((array >= p.low) & (array <= p.high)).all()
                ):
                    return False
        return True


def good_options(rng, place):
    """Arguments of an optimizer in that place, all of them good."""
    name = rng.choice(["default"] * 6 + list(METHODS))
    options = {
        "bounds": place.bounds,
        "seed": rng.choice([0, 1, 7, 2**70, np.int64(3), np.uint8(200), 123456]),
        "method": METHODS[name] if rng.random() < 0.96 else cylbo.METHODS[name] if name == "default" else METHODS[name],
    }
    if rng.random() < 0.3:
        options["center"] = place.point()
    if rng.random() < 0.3:
        options["x0"] = [place.point() for _ in range(rng.randint(0, 3))]
        if not place.named and not options["x0"]:
            options["x0"] = np.empty((0, len(place.low)))
        if rng.random() < 0.6:
            options["y0"] = [rng.choice([0.0, 1.0, -2.5, 1e300, rng.gauss(0.0, 1.0)]) for _ in options["x0"]]
    if not place.named and place.high.max() < 1e300 and rng.random() < 0.2:
        options["region"] = "ball"
    for key, choices in (("direction", ["minimize", "maximize"]), ("noisy", [None, True, False])):
        if rng.random() < 0.4:
            options[key] = rng.choice(choices)
    if name == "default" and rng.random() < 0.15:
        options["max_suggest_seconds"] = rng.choice(
            [0.05, 1e-300, 1e308, math.inf, 10**400, Fraction(1, 5), np.float32(0.1), 10**20]
        )
    if name == "default" and rng.random() < 0.15:
        options["max_memory"] = rng.choice([1, 1e-300, 1e6, Fraction(1, 3), 1e308, math.inf, 2**40])
    return options


def spoiled(options, rng):
    """The same with one or two bad ones among them."""
    names = rng.sample(list(BAD_OPTIONS), rng.choice([1, 1, 1, 2]))
    bad = dict(options)
    for name in names:
        bad[name] = rng.choice(BAD_OPTIONS[name])
    return bad


# ---- a session


@contextlib.contextmanager
def watched():
    """Ends a call that hangs."""

    def stop(*_):
        raise Stuck(f"no answer within {STUCK_SECONDS} seconds")

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, STUCK_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


class Session:
    """One optimizer in the hands of a hostile caller, and what it must be like by now."""

    def __init__(self, rng, folder, tally=None):
        self.rng, self.folder = rng, Path(folder)
        self.tally = Counter() if tally is None else tally
        self.calls = 0
        self.hostility = rng.choice([0.2, 1.0])  # runs that get far, and runs that hardly get anywhere
        self.values = rng.choice([FINITE, [rng.gauss(0.0, 1.0) for _ in range(20)]])
        self.errstate = rng.choice(["warn", "raise"])  # what the caller wants NumPy to do is none of our business
        self.place = Place(rng)
        self.options = good_options(rng, self.place)
        self.path = self.folder / "run.db" if rng.random() < 0.5 else None
        self.opt = self.call(
            "Optimizer", lambda: cylbo.Optimizer(**self.options, storage=self.path), good=True, first=True
        )
        self.options["seed"] = self.opt.seed
        self.closed = False
        self.n_constraints = None  # until the first value
        self.log = []  # of accepted calls, for the twin
        self.earlier = self.opt.trials
        self.model = bits(self.earlier)
        self.state = self._state()
        self.check()

    # ---- what must be so

    def call(self, operation, function, *, good, refusals=(ValueError, TypeError), first=False):
        """What the function returns; None if it refuses, which must be right and change nothing.

        `good` is whether the call must be accepted; None if either will do.
        """
        self.calls += 1
        error = None
        try:
            with watched(), np.errstate(all=self.errstate):
                result = function()
        except (Exception, Interrupt, Stuck) as raised:
            error, result = raised, None
        self.error = error
        self.tally[operation, "accepted" if error is None else type(error).__name__] += 1
        if error is None:
            require(good is not False, f"{operation}: bad arguments were accepted: {_captured(function)}")
            return result
        if good or isinstance(error, NEVER) or not isinstance(error, (*refusals, GrumpyError)):
            raise Wrong(
                f"{operation}: {type(error).__name__} must not come of {_captured(function)}: {_text(error)}"
            ) from error
        require(
            first or self._state() == self.state, f"{operation}: refused with {_text(error)}, and changed something"
        )
        return None

    def _state(self):
        """Everything that is shown, everything that the next ask depends on, and everything in the file."""
        opt = self.opt
        state = [
            bits(opt.trials), opt.best and opt.best.id, json.dumps(_memory_to_json(opt._memory)), [x.tobytes() for x in opt._queue],
            opt.seed,
        ]  # fmt: skip
        if self.path is not None:
            header, _, trials, memory = read(self.path)
            state += [bits(trials), json.dumps(header), json.dumps(_memory_to_json(memory))]
        return state

    def check(self, *, changed=True):
        """What is in memory is what was told, and so is what is in the file."""
        opt, trials = self.opt, self.opt.trials
        state = self._state()
        if not changed:
            require(state == self.state, "a call that only looks changed something")
        self.state = state
        require(state[0] == self.model, "the trials are not what was asked and told")
        if self.path is not None:
            loaded = cylbo.load(self.path)
            require(bits(loaded.trials) == self.model, "the file is not what was asked and told")
            require(state[7] == state[2], "the file's memory is not the optimizer's")
        feasible = [t for t in trials if t.status == "done" and all(c <= 0 for c in t.constraints)]
        best = opt.best
        require((best is None) == (not feasible), "there is a best trial exactly if one counts")
        if best is not None:
            sign = -1.0 if opt.direction == "maximize" else 1.0
            require(best.id in [t.id for t in feasible], "the best trial is one that counts")
            if not self._noisy():
                first = min(feasible, key=lambda t: (sign * t.value, t.id))
                require(best.id == first.id, "the best trial has the best value")

    def _noisy(self):
        """Whether values are known to be noisy."""
        opt = self.opt
        if opt.noisy is not None:
            return opt.noisy
        values = {}
        done = [t for t in opt.trials if t.status == "done"]
        for t in done:
            values.setdefault(t.x.tobytes(), set()).add(t.value)
        return any(t.std > 0 for t in done) or any(len(each) > 1 for each in values.values())

    def _draw(self, good, bad, share=0.25):
        """One of these, and whether it is a good one."""
        is_good = self.rng.random() > share * self.hostility
        return self.rng.choice(good if is_good else bad), is_good

    @property
    def _refusals(self):
        return (ValueError, TypeError, cylbo.StorageError) if self.closed else (ValueError, TypeError)

    # ---- ask, tell, fail, look

    def ask(self):
        counts = [None] * 6 + [1, 2, 3, np.int64(2)] + [10**9, HUGE] * (self.place.n_points < 20)
        n, is_good = self._draw(counts, BAD_COUNTS)
        known = {t.x.tobytes() for t in self.opt.trials}
        exhausted = len(known) >= self.place.n_points
        refusals = (*self._refusals, cylbo.SpaceExhaustedError) if exhausted else self._refusals
        asked = self.call(
            "ask" if n is None else "ask(n)",
            lambda: self.opt.ask() if n is None else self.opt.ask(n),
            good=is_good and not self.closed and not exhausted,
            refusals=refusals,
        )
        if asked is None:
            return
        batch = [asked] if n is None else asked
        require(len(batch) >= 1, "a batch is not empty")
        for trial in batch:
            require(trial.status == "open" and trial.id == len(self.model), "a new trial is open and has the next id")
            where = self.place.holds(trial, self.options.get("center"), self.options.get("region", "box"))
            require(where, f"a point lies where none may: {trial.x}, {trial.params}")
            is_new = trial.x.tobytes() not in known
            require(is_new or trial.origin in ("repeated", "given"), f"a point was asked for twice ({trial.origin})")
            known.add(trial.x.tobytes())
            self.model += bits([trial])
        if n is not None and len(batch) < n:
            require(len(known) >= self.place.n_points, "a batch ends early only where the space does")
        self._note(("ask", n if n is None else len(batch)))
        self.check()

    def tell(self):
        trial, value, std = (
            self._trial(),
            self._draw(self.values, NO_NUMBERS + NOT_FINITE),
            self._draw(GOOD_STD, BAD_STD, 0.1),
        )
        constraints, are_good, count = self._constraints()
        found, kind = trial
        told = self.call(
            "tell",
            lambda: self.opt.tell(found, value[0], std=std[0], constraints=constraints()),
            good=kind == "open" and value[1] and std[1] and are_good and not self.closed,
            refusals=self._expected(kind, value[1] and std[1] and are_good),
        )
        if told is None:
            return
        given = () if constraints() is None else tuple(float(c) for c in constraints())
        sd = math.nan if std[0] is None else float(std[0])
        self._close(told, status="done", value=float(value[0]), std=sd, constraints=given)
        self.n_constraints = count
        self._note(("tell", told.id, float(value[0]), std[0], given))
        self.check()

    def fail(self):
        (found, kind), reason = self._trial(), self.rng.choice(REASONS)
        failed = self.call(
            "fail",
            lambda: self.opt.fail(found, reason),
            good=kind == "open" and not self.closed,
            refusals=self._expected(kind, True),
        )
        if failed is not None:
            self._close(failed, status="failed", reason=spelled(reason))
            self._note(("fail", failed.id, reason))
            self.check()

    def look(self):
        what = self.rng.choice(["best", "trials", "health", "recommended", "repr", "spoil"])
        if what == "health":
            require(str(self.call("health", self.opt.health, good=True)), "a report says something")
        elif what == "spoil":  # what is handed out is the caller's to change, or cannot be changed
            self.call("trials", self._spoil, good=None)
        elif what == "repr":
            self.call(
                "repr", lambda: (repr(self.opt), [repr(t) for t in self.opt.trials], repr(self.opt.best)), good=True
            )
        else:
            read_it = getattr(self.opt, what)
            self.call(what, lambda: read_it() if callable(read_it) else read_it, good=True)
        self.check(changed=False)

    def _spoil(self):
        trials = self.opt.trials
        trials.reverse()
        for trial in trials[:1]:
            with contextlib.suppress(ValueError, dataclasses.FrozenInstanceError):
                trial.x[:] = math.nan
            with contextlib.suppress(dataclasses.FrozenInstanceError):
                trial.value = 0.0
        trials.clear()

    def _trial(self):
        """A trial or something else in its place, and which: open, closed or unknown."""
        rng, trials = self.rng, self.opt.trials
        wanted = [t for t in trials if t.status == "open"]
        draw = rng.random() / self.hostility
        if draw > 0.3 and wanted:
            trial, kind = rng.choice(wanted), "open"
        elif draw > 0.15 and (wanted := [t for t in trials if t.status != "open"]):
            trial, kind = rng.choice(wanted), "closed"
        else:
            return self._unknown(), "unknown"
        same = [trial, trial.id, np.int64(trial.id), copy.copy(trial), copy.deepcopy(trial)]
        if trial.status != "open":  # an older snapshot
            same.append(dataclasses.replace(trial, status="open", value=math.nan))
        return rng.choice(same), kind

    def _unknown(self):
        trials = self.opt.trials
        if not trials or self.rng.random() < 0.7:
            return self.rng.choice([*BAD_IDS, len(trials)])
        trial = self.rng.choice(trials)
        x = trial.x
        others = [
            {"id": len(trials)}, {"id": -1}, {"id": None}, {"id": "0"}, {"id": Grumpy()}, {"x": np.append(x, 0.0)}, {"x": x + np.nan},
            {"x": np.array(["a"] * len(x))}, {"x": None}, {"x": x[None]}, {"x": np.nextafter(x, 9e307)}, {"x": 0.0}, {"x": Grumpy()},
        ]  # fmt: skip
        return dataclasses.replace(trial, **self.rng.choice(others))

    def _expected(self, kind, rest_is_good):
        if kind == "unknown":
            return (cylbo.UnknownTrialError,)
        if kind == "closed" and rest_is_good:
            return (cylbo.TrialClosedError,)
        return self._refusals

    def _constraints(self):
        """Constraints (anew with every call: some can be read once), whether they are good, and how many there are."""
        rng, m = self.rng, self.n_constraints
        count = rng.choice([0, 0, 0, 1, 2]) if m is None else m
        if rng.random() < 0.15 * self.hostility:
            bad = [
                "12", b"12", {0: 1.0}, {0.5}, 3.0, math.nan, [math.nan] * max(count, 1), [[1.0]], ["1"], [None], np.array(1.0),
                np.ones((1, 2)), np.array([math.inf]), object(), Grumpy(), [Grumpy()], [10**400], [1j], True, [HUGE], [GrumpyNumber()],
                [np.ma.masked],
            ]  # fmt: skip
            if m is not None:
                bad += [[0.0] * (m + 1), [0.0] * (m + 7)] + [[0.0] * (m - 1)] * (m > 0)
            chosen = rng.choice(bad)
            return (
                rng.choice([lambda: chosen, lambda: (Grumpy().x for _ in [Grumpy()] if float(Grumpy()))]),
                False,
                None,
            )
        numbers_ = tuple(
            rng.choice([-1.0, 0.0, -0.0, 1.0, rng.gauss(0, 1), 1e308, -1e308, 5e-324, Fraction(-1, 3)])
            for _ in range(count)
        )
        forms: list[Callable[[], Any]] = [
            lambda: numbers_, lambda: list(numbers_), lambda: iter(numbers_), lambda: (c for c in numbers_),
            lambda: np.array(numbers_, float), lambda: dict(enumerate(numbers_)).values(),
        ]  # fmt: skip
        if not count:
            forms.append(lambda: None)
        return rng.choice(forms), True, count

    def _note(self, call):
        if self.log is not None:
            self.log.append(call)

    def _close(self, trial, **fields):
        """The model's trial has this outcome."""
        old = self.opt.trials[trial.id]
        require(trial.id == old.id, "the trial that was told comes back")
        asked = self.model[trial.id]
        expected = dict(
            zip(
                ["id", "x", "value", "status", "origin", "reason", "std", "constraints", "info", "params", "seconds"],
                asked,
                strict=True,
            )
        )
        require(expected["status"] == "open", "only an open trial may be closed")
        fields = {key: packed(value) if key in ("value", "std") else value for key, value in fields.items()}
        self.model[trial.id] = tuple((expected | fields).values())
        require(bits([trial]) == [self.model[trial.id]], "what comes back is what was told")

    # ---- close and go on

    def close(self):
        """Let go, be refused, and go on with the file; without a file nothing happens."""
        for _ in range(self.rng.randint(1, 2)):
            self.call("close", self.opt.close, good=True)
        self.check(changed=False)
        self.closed = self.path is not None

    def go_on(self):
        if not self.closed:
            self._in_use()
            return
        rng = self.rng
        if rng.random() < 0.5:
            with self._untouched(self.path):
                self.call(
                    "resume", lambda: _let_go(cylbo.Optimizer(**self._other_run())), good=False, refusals=DOCUMENTED
                )
        opt = self.call(
            "resume",
            lambda: cylbo.Optimizer(**self.options, storage=rng.choice([self.path, str(self.path)]), resume=True),
            good=True,
        )
        self.opt, self.closed = opt, False
        self.check(changed=False)
        if rng.random() < 0.3 and "region" not in self.options:
            self._widen()

    def _widen(self):
        """Go on in a larger space: nothing that was told is lost, and the twin has nothing more to say."""
        before = self.opt.trials
        wider = self.place.wider()
        options = {**self.options, "bounds": wider.bounds, "storage": self.path, "resume": True}
        for name in ("center", "x0", "y0"):
            options.pop(name, None)
        self.opt.close()
        self.opt = self.call("widen", lambda: cylbo.Optimizer(**options), good=True)
        center = self.opt.space.center if not wider.named else None
        self.place, self.options = wider, {**self.options, "bounds": wider.bounds, "center": center}
        self.options = {name: value for name, value in self.options.items() if name not in ("x0", "y0")}
        after = self.opt.trials
        for old, new in zip(before, after, strict=True):
            kept = all(repr(new.params[name]) == repr(value) for name, value in (old.params or {}).items())
            require(kept if wider.named else np.array_equal(old.x, new.x), "a point is the same in a larger space")
            moved = dataclasses.replace(new, x=old.x, params=old.params)
            require(bits([moved]) == bits([old]), "what was told is the same in a larger space")
        self.model, self.log = bits(after), None
        self.check()

    def _other_run(self):
        """Arguments that are not those of the run in the file."""
        rng, options = self.rng, self.options
        other = {**options, "storage": self.path, "resume": True}
        changes = [
            {"seed": options["seed"] + 1},
            {"direction": "maximize" if self.opt.direction == "minimize" else "minimize"},
            {"noisy": True if self.opt.noisy is None else None},
            {"method": dataclasses.replace(self.opt.config, n_sobol=63)},
            {"bounds": [(-3, -2)] * 7, "center": None, "x0": None, "y0": None},
            {"resume": False},
            {"x0": [self.place.point() for _ in range(4)], "y0": None},
        ]
        return other | rng.choice(changes) if rng.random() < 0.7 else spoiled(other, rng)

    def _in_use(self):
        if self.path is not None:
            self.call(
                "resume",
                lambda: cylbo.Optimizer(**self.options, storage=self.path, resume=True),
                good=False,
                refusals=(cylbo.StorageError,),
            )

    @contextlib.contextmanager
    def _untouched(self, path):
        """The file is the same afterwards, byte by byte, or still not there."""
        before = _contents(path)
        yield
        require(_contents(path) == before, f"a refused call changed {path}")

    # ---- what needs no optimizer

    def construct(self):
        """Another optimizer: from good arguments, or none."""
        rng = self.rng
        place = Place(rng)
        options, is_good = good_options(rng, place), rng.random() < 0.2
        if not is_good:
            options = spoiled(options, rng)
        path = self.folder / f"{self.calls}.db"
        draw = rng.random()
        refusals: tuple[type[Exception], ...] = (ValueError, TypeError)
        if draw < 0.3:
            options |= {"storage": path, "resume": rng.choice([True, False])}
        elif draw < 0.4:
            options["storage"], is_good, refusals = self._bad_name(), False, (ValueError, TypeError, cylbo.StorageError)
        elif draw < 0.45:
            options["resume"], is_good = True, False
        elif draw < 0.5:  # there is no way to write it down
            options |= {"seed": HUGE, "storage": path}
            is_good = False
        opt = self.call("Optimizer", lambda: cylbo.Optimizer(**options), good=is_good, refusals=refusals)
        if opt is None:
            require(not path.exists(), "a refused optimizer left a file")
            return
        trial = self.call("ask", opt.ask, good=True)
        require(
            place.holds(trial, options.get("center"), options.get("region", "box")), "the first point lies where it may"
        )
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
        rng, place = self.rng, Place(self.rng)
        options = {**good_options(rng, place), "on_error": rng.choice(["raise", "fail"]), "budget": rng.randint(1, 7)}
        script = [rng.choice(ACTS) for _ in range(options["budget"])]
        played, path = [], self.folder / f"{self.calls}.db"
        stops = rng.choice([None] * 4 + [StopIteration(), ValueError("callback"), Interrupt()])
        stop_after = rng.randint(1, options["budget"])
        if rng.random() < 0.4:
            options["storage"] = path

        def fun(x):
            played.append(script[len(played)])
            with contextlib.suppress(Exception):
                x.clear() if isinstance(x, dict) else x.fill(math.nan)  # its own to change
            kind, what = played[-1]
            if kind in ("raises", "interrupts"):
                raise what
            return rng.choice(what)

        def callback(trial):
            if stops is not None and len(played) == stop_after:
                raise stops

        options["callback"] = callback
        is_good = rng.random() < 0.7
        if not is_good:
            name = rng.choice(["fun", "budget", "callback", "on_error", "others"])
            bad = BAD_COUNTS if name == "budget" else [3, "raise!", b"raise", [], Grumpy(), np.zeros(2)]
            options = spoiled(options, rng) if name == "others" else options | {name: rng.choice(bad)}
        result = self.call(
            "minimize", lambda: cylbo.minimize(**{"fun": fun} | options), good=None, refusals=(Exception, Interrupt)
        )
        error = self.error
        if not is_good:
            require(
                result is None and isinstance(error, (*DOCUMENTED, GrumpyError)),
                f"bad arguments of minimize: {error!r}",
            )
            require(not played and not path.exists(), "minimize does nothing before its arguments are checked")
            return
        expected: tuple[BaseException | type[BaseException], ...] = ()
        for i, (kind, what) in enumerate(played, 1):
            is_last = i == len(played)
            ends = kind in ("wrong", "interrupts") or (kind == "raises" and options["on_error"] == "raise")
            if ends:
                expected = (TypeError, ValueError, GrumpyError) if kind == "wrong" else (what,)
            elif stops is not None and i == stop_after:
                ends, expected = True, () if isinstance(stops, StopIteration) else (stops,)
            require(is_last or not ends, "minimize went on after what should have ended it")
            if is_last and not ends:
                over = i == options["budget"] or place.n_points < math.inf
                require(over, f"minimize ends with its budget or with the space, not with {_text(error, repr)}")
        self._judge_minimize(result, error, expected, played, options, place)

    def _judge_minimize(self, result, error, expected, played, options, place):
        if expected:
            right = error in expected if isinstance(expected[0], BaseException) else isinstance(error, expected)
            require(error is not None and right, f"minimize ended with {error!r}, not with {expected}")
            result = getattr(error, "result", None)
            require(result is not None, "an error carries the result so far")
        require(result is not None, f"minimize ended with {error!r}")
        still_open = len(played) - result.nfev
        unfinished = expected and (played[-1][0] == "interrupts" or isinstance(error, GrumpyError))
        require(still_open == 0 or (still_open == 1 and unfinished), "evaluations are counted")
        require(
            all(place.holds(t, options.get("center"), options.get("region", "box")) for t in result.trials),
            "points lie where they may",
        )
        finite = [math.isfinite(v) for v in result.func_vals]
        require(finite == [kind == "gives" for kind, _ in played[: result.nfev]], "values are kept, and nothing else")
        if "storage" in options:
            require(
                bits(cylbo.load(options["storage"]).trials) == bits(result.trials), "the file is what minimize returned"
            )
            again = {key: value for key, value in options.items() if key not in ("budget", "on_error", "callback")}
            opt = self.call("resume", lambda: _let_go(cylbo.Optimizer(**again, resume=True)), good=True)
            require(bits(opt.trials) == bits(result.trials), "the run may go on")

    def load(self):
        """A file that may hold anything."""
        rng = self.rng
        if rng.random() < 0.2:
            name = self._bad_name()
            self.call(
                "load", lambda: cylbo.load(name), good=False, refusals=(ValueError, TypeError, cylbo.StorageError)
            )
            return
        path = self.folder / f"{self.calls}.db"
        self._damage(path)
        with self._untouched(path):
            result = self.call("load", lambda: cylbo.load(path), good=None, refusals=(cylbo.StorageError,))
        if result is not None:
            require([t.id for t in result.trials] == list(range(len(result.trials))), "trials are numbered")
        options = {**self.options, "storage": path, "resume": True}
        before = _contents(path)
        opt = self.call("resume", lambda: cylbo.Optimizer(**options), good=None, refusals=(cylbo.StorageError,))
        if opt is None:
            require(_contents(path) == before, "a refused call changed a file")
        else:
            self.call("ask", opt.ask, good=None, refusals=(cylbo.SpaceExhaustedError,))
            opt.close()

    def _damage(self, path):
        """Make a file that is no run, or one with something wrong in it."""
        rng = self.rng
        draw = rng.random()
        if self.path is None or draw < 0.15:
            content = rng.choice(
                [b"", b"hello", b"SQLite format 3\0", rng.randbytes(50), rng.randbytes(5000), b"\0" * 4096, None]
            )
            if content is None:
                with contextlib.closing(sqlite3.connect(path)) as db:
                    db.executescript(
                        rng.choice(
                            ["CREATE TABLE trials (id)", "PRAGMA application_id=1668770930; CREATE TABLE header (x)"]
                        )
                    )
            else:
                path.write_bytes(content)
            return
        with contextlib.closing(sqlite3.connect(self.path)) as db, contextlib.closing(sqlite3.connect(path)) as copied:
            db.backup(copied)
        if draw < 0.4:
            content = bytearray(path.read_bytes())
            if rng.random() < 0.3:
                del content[rng.randrange(len(content)) :]
            for _ in range(rng.choice([1, 1, 1, 10])):
                content[rng.randrange(len(content)) if content else 0 :][:1] = b""
                if content:
                    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
            path.write_bytes(content)
            return
        with contextlib.closing(sqlite3.connect(path)) as db:
            table = rng.choice(["header", "header", "trials", "trials", "memory", "memory"])
            found = db.execute(f"SELECT * FROM {table}")
            columns, rows = [name for name, *_ in found.description], found.fetchall()
            if not rows:
                return
            row = list(rng.choice(rows))
            key, i = row[0], rng.randrange(len(row))
            text = row[i]
            if isinstance(text, str) and columns[i] in ("json", "constraints", "info") and rng.random() < 0.7:
                row[i] = json.dumps(mutated(json.loads(text), rng))
            else:
                row[i] = rng.choice(CELLS)
            db.execute(f"DELETE FROM {table} WHERE {'name' if table == 'header' else 'id'} = ?", [key])
            if rng.random() < 0.9:
                with contextlib.suppress(sqlite3.Error, OverflowError):
                    db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
            db.commit()

    def space(self):
        """A parameter, or a space of them."""
        rng = self.rng
        kind = rng.choice([Real, Integer, Categorical, Space])
        good, bad = PARAMETERS[kind]
        (args, options), is_good = self._draw(good, bad, 0.7)
        made = self.call(kind.__name__, lambda: kind(*args, **options), good=is_good)
        if made is not None:
            self._sound(made if kind is Space else Space(x=made))

    def from_json(self):
        """What `to_json` gave, with something wrong in it."""
        tree = mutated(self.rng.choice(SPACES).to_json(), self.rng)
        made = self.call("from_json", lambda: Space.from_json(tree), good=None, refusals=(ValueError,))
        if made is not None:
            self._sound(made)

    def _sound(self, space):
        """A space that was accepted can be written down, and every point of it can be given back."""
        require(repr(space), "a space can be shown")
        again = Space.from_json(json.loads(json.dumps(space.to_json())))
        require(again == space, "a space survives JSON")
        z = np.array([[self.rng.uniform(-1.0, 1.0) for _ in range(space.dim)] for _ in range(3)])
        for u in space.decode(np.concatenate([z, -np.ones((1, space.dim)), np.ones((1, space.dim))])):
            require(np.array_equal(space.vector(space.params(u), "u"), u), f"a point of {space} is refused by it: {u}")
            require((np.abs(space.encode(u[None])) <= 1.0 + 1e-9).all(), f"a point of {space} lies outside: {u}")

    # ---- the end

    def finish(self):
        """A twin that gets what was accepted, and nothing else, comes to the same."""
        self.opt.close()
        if "max_suggest_seconds" in self.options or self.log is None:  # points depend on the clock, or on other bounds
            return
        twin = cylbo.Optimizer(**self.options)
        for what, *arguments in self.log:
            if what == "tell":
                trial, value, std, constraints = arguments
                twin.tell(trial, value, std=std, constraints=constraints)
            else:
                getattr(twin, what)(*arguments)
        require(bits(twin.trials, seconds=False) == bits(self.opt.trials, seconds=False), "refused calls left a trace")


OPERATIONS = {
    "ask": 20, "tell": 35, "fail": 8, "look": 6, "close": 3, "go_on": 8, "construct": 12, "minimize": 4, "load": 6, "space": 10,
    "from_json": 6,
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


def mutated(tree, rng):
    """A copy of a JSON tree with one of its nodes replaced, left out or doubled."""
    tree = copy.deepcopy(tree)
    holder, key = [tree], 0
    while isinstance(holder[key], dict | list) and holder[key] and rng.random() < 0.85:
        holder = holder[key]
        key = rng.choice(list(holder)) if isinstance(holder, dict) else rng.randrange(len(holder))
        if holder is tree and rng.random() < 0.05:
            break
    draw = rng.random()
    if draw < 0.7 or holder is tree:
        holder[key] = rng.choice(JSON_VALUES)
    elif draw < 0.85:
        del holder[key]
    elif isinstance(holder, list):
        holder.append(holder[key])
    else:
        holder["other"] = holder[key]
    return tree


def _text(what, spell=str):
    try:
        return spell(what)[:3000]
    except Exception as error:
        return f"<{type(what).__name__} that says {type(error).__name__}>"


def _captured(function):
    """The variables that a lambda was made with: the arguments of a call."""
    variables = inspect.getclosurevars(function).nonlocals if inspect.isfunction(function) else {}
    return ", ".join(f"{name}={_text(value, repr)}" for name, value in variables.items() if name != "self")


def _let_go(opt):
    """An optimizer that should not have come about leaves the file to others."""
    opt.close()
    return opt


def _contents(path):
    """What a run's files hold. An empty log is as good as none, and is what SQLite leaves behind where it only reads."""
    each = {name: Path(f"{path}{name}") for name in ("", "-wal")}
    return {name: content for name, one in each.items() if one.is_file() and (content := one.read_bytes())}


# ---- in full


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=20_000, help="in all")
    parser.add_argument("--seed", type=int, nargs="+", default=[0], help="each gets its share of the calls")
    parser.add_argument("--session", type=int, nargs="+", help="only these, as a failure named them")
    parser.add_argument("--progress", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("error")  # as in the tests
    tally: Counter[tuple[str, str]] = Counter()
    failures = []
    for seed in _sessions(options, tally):
        with tempfile.TemporaryDirectory() as folder:
            try:
                play(random.Random(seed), folder, tally=tally)
            except Exception:
                failures.append(seed)
                traceback.print_exc()
                print(f"\nagain: python tests/fuzz.py --session {seed}\n", file=sys.stderr)
    print(_table(tally))
    print(
        f"{tally.total()} calls, {len(failures)} sessions went wrong"
        + f": --session {' '.join(map(str, failures))}" * bool(failures)
    )
    return 1 if failures else 0


def _sessions(options, tally):
    if options.session:
        yield from options.session
        return
    for i, seed in enumerate(options.seed, 1):
        draw = random.Random(seed)
        while tally.total() < options.calls * i / len(options.seed):
            if options.progress:
                print(f"\rseed {seed}: {tally.total()} of {options.calls} calls", end="", file=sys.stderr, flush=True)
            yield draw.getrandbits(32)
    if options.progress:
        print(file=sys.stderr)


def _table(tally):
    outcomes = sorted({outcome for _, outcome in tally}, key=lambda name: (name != "accepted", name))
    rows = [["operation", "calls", *outcomes]]
    for operation in sorted({operation for operation, _ in tally}):
        counts = [tally[operation, outcome] for outcome in outcomes]
        rows.append([operation, str(sum(counts)), *(str(count or "") for count in counts)])
    rows.append(
        [
            "all",
            str(tally.total()),
            *(str(sum(tally[o, outcome] for o in {o for o, _ in tally})) for outcome in outcomes),
        ]
    )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


if __name__ == "__main__":
    sys.exit(main())
