"""Arguments good and bad, by where they are given: a bad one must be refused whatever stands beside it."""

import dataclasses
import math
import numbers
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

import numpy as np

import cylbo
from cylbo import Boolean, Categorical, Integer, Real, Space

# ---- objects


class GrumpyError(Exception):
    """What a grumpy object says."""


class Grumpy:
    """Raises at every look."""

    def _refuse(self, *_, **__):
        raise GrumpyError

    __float__ = __int__ = __index__ = __bool__ = __len__ = __iter__ = __getitem__ = __contains__ = _refuse
    __repr__ = __str__ = __eq__ = __hash__ = __lt__ = __le__ = __gt__ = __ge__ = __array__ = __fspath__ = _refuse


class GrumpyInteger(Grumpy):
    """Says that it is an integer, and raises."""


class Number:
    """Says that it is a real number; `float` gets whatever is in it."""

    def __init__(self, content):
        self.content = content

    def __float__(self):
        return self.content


class Tensor:
    """What NumPy, torch, jax and pandas have in common, with one entry."""

    def __init__(self, content, shape=(1,)):
        self.content, self.shape = content, shape

    def item(self):
        return self.content


class MuteError(Exception):
    """Cannot be shown."""

    def __str__(self):
        raise GrumpyError


class Interrupt(BaseException):
    """Like Ctrl-C."""


numbers.Integral.register(GrumpyInteger)
numbers.Real.register(Number)
HUGE = 10**5000  # which Python does not spell
ENDLESS = []
ENDLESS.append(ENDLESS)

# fmt: off

# ---- numbers, ids, counts, reasons

NO_NUMBERS = [
    None, "1.0", "", b"1", 1j, np.complex64(1), Decimal(1), [1.0], (1.0,), [], {}, {1.0}, range(3), np.array([1.0, 2]),
    True, False, np.bool_(True), np.array(False), np.array([True]), Tensor(True), Tensor(None), Tensor("1"),
    Tensor([1.0]), Tensor(1.0, (2,)), Tensor(1.0, 1), Tensor(Grumpy()), np.array(["1"]), np.ma.array([1.0], mask=True),
    np.array([5], "m8[ns]"), np.timedelta64(5, "ns"),
    np.zeros((2, 3)), np.empty(0), np.array("1"), np.array(None), np.ma.masked, np.datetime64("2020-01-01"),
    np.timedelta64(1, "s"), lambda: 1.0, object(), float, ..., NotImplemented, memoryview(b"1"),
    ENDLESS, Number("1"), Number(None), Grumpy(), GrumpyInteger(), Exception("no"),
]
NANS = [math.nan, np.float32("nan"), np.array(math.nan), Number(math.nan), np.array([math.nan]), Tensor(math.nan)]
INFINITE = [
    math.inf, -math.inf, np.float16("inf"), np.array(-np.inf), np.longdouble("inf"),
    10**400, -(10**400), HUGE, -HUGE, Fraction(10**400),
]
NOT_FINITE = NANS + INFINITE
FINITE = [
    0, 1, -1, 0.5, -0.25, 3.0, -0.0, 1e-3, 7, -2.5, 100.0, 10**20, -(10**300), 1e308, -1.7e308, 5e-324, 1e-300,
    Fraction(1, 3), np.float32(1.5), np.float16(-2), np.int8(-5), np.uint64(2**64 - 1), np.longdouble("2.5"),
    np.array(3.0), np.array(2), np.array(Fraction(1, 7), object), np.ma.array(1.25), Number(2.5),
    np.array([1.5]), np.array([[-3]]), np.ma.array([0.5], mask=False), Tensor(2.0), Tensor(Fraction(1, 3), (1, 1)),
]
GOOD_STD = [
    None, None, None, 0, 0.1, -0.0, 1e300, 5e-324, np.float32(0.5), Fraction(1, 3), 10**10, np.array(0.2), Tensor(0.3),
    *NANS,
]
BAD_STD = [-1, -5e-324, *(thing for thing in NO_NUMBERS if thing is not None), *INFINITE]
GOOD_CONSTRAINT = [
    -1.0, 0.0, -0.0, 1.0, -0.3, 1e308, -1e308, 5e-324, Fraction(-1, 3), np.float32(2.0), np.array([-0.5]), Tensor(-2.0),
]
BAD_CONSTRAINTS = [
    "12", b"12", {0: 1.0}, {0.5}, 3.0, math.nan, [math.nan], [[1.0]], ["1"], [None], np.array(1.0), np.ones((1, 2)),
    np.array([math.inf]), object(), Grumpy(), [Grumpy()], [10**400], [1j], True, [True], [HUGE], [GrumpyInteger()],
    [np.ma.masked], [np.bool_(True)], [Tensor(False)], [np.array([1.0, 2.0])],
]
BAD_IDS = [
    -1, 10**6, HUGE, -HUGE, True, False, 0.0, 1.0, math.nan, "0", b"0", None, [0], (0,), {0}, np.array([0]),
    np.array(0), 1j, Decimal(0), Fraction(0), slice(0), object(), cylbo.Trial, ..., Grumpy(), GrumpyInteger(),
    np.float64(0),
]
BAD_COUNTS = [
    0, -1, -HUGE, True, False, -1.0, 0.0, 2.5, math.nan, math.inf, "2", b"2", [], (1,), np.array(2), Fraction(2),
    Decimal(2), 1j, object(), Grumpy(), GrumpyInteger(),
]
BAD_FLAGS = ["True", "no", "", 0, 1, 1.0, None, [], {}, np.array(True), object(), Grumpy()]
REASONS = [  # all of them good
    "", "no", None, b"\xff", "\ud800 half", "\0", "x" * 100_000, "'; DROP TABLE trials; --", 3.5, ValueError("why"),
    [1, "\udfff"], "é \U0001f600", object(), np.zeros(3), ENDLESS, math.nan, HUGE, Grumpy(),
]

# ---- an optimizer

QUICK = {
    "n_sobol": 64, "n_spray": 10, "sweeps": 2, "first_sweeps": 3, "max_steps": 4, "fit_steps": 4, "warm_steps": 2,
    "n_starts": 3,
}
# Few evaluations until fits go on from the last ones, and until noise is suspected
GROWTH = {"refit_until": 5, "refit_growth": 0.6, "warm_growth": 0.2, "n_first_discrete": 1}
METHODS = {name: dataclasses.replace(method, **QUICK, **GROWTH) for name, method in cylbo.METHODS.items()}

BOXES = [
    [(-1.0, 2.0), (10.0, 30.0)], [(0, 1)], np.array([[-1, 1]] * 3, np.int8), [(0.0, 1e-300)], [(-8e307, 8e307)] * 2,
    [(1e15, 1e15 + 1e8), (-1e-5, 1e12)], [[Fraction(-1, 3), 0], [0, 10**25]], np.array([[-1, 1]] * 4, np.float16),
    ((-5.0, -4.0), (1.0, 1.0 + 1e-6)),
]
SPACES = [
    Space(flag=Boolean(), which=Categorical(["a", "b", None])),
    Space(n=Integer(-1, 2)),
    Space({"": Real(1e-300, 1e300, log=True), "\ud800": Categorical([1, 2.5, "1", math.inf]), "class": Real(-1, 1)}),
    Space(n=Integer(-(2**53), 2**53), m=Integer(1, 1000, log=True), w=Real(0, 1, shape=(2, 1)), flag=Boolean()),
    Space(w=Real(0.0, 5e-300), b=Real(1e-310, 1.0, log=True, default=1e-310)),
    Space(k=Integer(0, 1, shape=3, default=1), which=Categorical(range(4), default=2), flag=Boolean(default=True)),
]
MORE = [Real(0, 1, default=0.25), Integer(1, 9, default=9), Categorical(["x", "z"], default="z")]  # for a larger space

GOOD_LIMITS = [0.05, 1e-300, 1e-9, Fraction(1, 3), np.float32(0.1), 1e6, 10**20, 1e308, 10**400, math.inf]
GOOD_METADATA = [None] * 5 + [
    {}, {"a": 1.5, "b": [None, {"c": "\udfff"}]}, {"": math.nan}, {"x": np.float32(1)}, {"n": np.arange(2)},
]  # fmt: skip
BAD_METADATA = [
    3, "a", [], [{}], {"a": {1}}, {1: 2}, {"a": Grumpy()}, {"a": object()}, Grumpy(), {"a": ENDLESS}, {"a": HUGE},
    {"a": 1j},
]  # fmt: skip
BAD_LIMITS = [0, -1.0, math.nan, -math.inf, True, "1", [1], 1j, Decimal(1), -HUGE, -(10**400), Grumpy(), object()]
BAD_OPTIONS = {
    "bounds": [
        None, 3, "ab", b"ab", [], [[]], [()], [(0, 0)], [(1, 0)], [(0, math.nan)], [(-math.inf, 0)], [(0, 1, 2)],
        [(0,)], [0, 1], [(0, 1), (0,)], [("0", "1")], [(0, 1j)], [(0, None)], [(-1e308, 1e308)], [(0, 10**400)],
        [(1, 1 + 1e-12)], [(0.0, 5e-324)], [(0.0, 1e-320), (0, 1)], {"a": (0, 1)}, {(0, 1)}, iter([(0, 1)]),
        np.zeros((2, 2, 2)), np.zeros((0, 2)), [np.datetime64("2020")] * 2, Space, Real(0, 1), {"x": Real(0, 1)},
        np.ma.array([[0.0, 1.0]], mask=[[False, True]]), ENDLESS, [[ENDLESS, 1]], object(), Grumpy(), [Grumpy()],
        [(0, Grumpy())], [(0, GrumpyInteger())], [(0, Decimal(1))], np.array([[0.0] * 3, [1.0] * 3]),
        ([-5, -5], [5, 5]), SimpleNamespace(lb=[0, -math.inf], ub=[1, 1]), SimpleNamespace(lb=0, ub=1),
        SimpleNamespace(lb=[0] * 2, ub=[1] * 3), SimpleNamespace(lb=Grumpy(), ub=1),
        SimpleNamespace(lb="a", ub="b"), SimpleNamespace(lb=[0], ub=None),
    ],
    "seed": [
        -1, 1.5, -1.0, math.inf, "0", True, [1], (), math.nan, 1j, -HUGE, np.array(1), Decimal(1), Grumpy(),
        GrumpyInteger(), int,
    ],
    "method": ["", "Default", "newton", b"default", None, 1, cylbo.Method, {}, ["default"], Grumpy(), object()],
    "region": ["sphere", "", None, 1, b"box", ["box"], np.array(["box", "ball"]), Grumpy()],
    "direction": ["min", "", None, 1, b"minimize", ["minimize"], np.array(["minimize", "maximize"]), Grumpy()],
    "sede": [0],
    "noisy": [0, 1, "no", [], math.nan, Grumpy()],
    "max_suggest_seconds": BAD_LIMITS,
    "max_memory": BAD_LIMITS,
    "center": [
        "middle", 3, [], [math.nan] * 2, [[0.5]], [1e300] * 7, [None], {}, {"a": 1}, {1: 2}, [1j], ENDLESS, object(),
        Grumpy(), [Grumpy()], set(),
    ],
    "x0": [
        3, "x", [[]], [[math.nan]], [["a"]], [[0.5] * 9], [{}], [{"a": 1}], {"a": [1]}, [None], [1.0], [[None]],
        [[1j]], object(), Grumpy(), [Grumpy()], [[Grumpy()]], ENDLESS, np.zeros((1, 1, 1)), [{1: Grumpy()}],
    ],
    "trials": ["runs.csv", 3, [1], [None], [{}], Grumpy(), [cylbo.Trial(0, np.zeros(7), 1.0, "done")]],
    "y0": [[[1.0]], "y", [1.0] * 9, 3, [None], [1j], ENDLESS, [Grumpy()], np.ma.masked_all(1), {}],
}
BAD_NAMES = [  # of files; strings lie in a folder with a pipe and with a link to itself, the circle
    3, b"bytes", object(), 1.5, Grumpy(), "", ".", "nul\0", "\ud800", "x" * 5000, "missing/run.db", "circle",
    "circle/run.db", "pipe",
]

# ---- what an objective may do, one after the other

ACTS = [
    *[("gives", FINITE)] * 12,
    *[("gives", [{"value": 1.0}, {"value": Fraction(1, 2), "std": 0.5}, {"value": 3, "constraints": None}])] * 3,
    *[("nothing", NOT_FINITE)] * 3,
    ("nothing", [{"value": math.nan}, {"value": 1.0, "std": math.inf}, {"value": 1.0, "constraints": [math.nan]}]),
    ("wrong", NO_NUMBERS),
    ("wrong", [{"values": 1.0}, {"value": 1.0, "trial": 0}, {"value": 1.0, 3: 4}, {"value": "1"}, {"std": 1.0}]),
    ("wrong", [{"value": 1.0, "std": -1.0}, {"value": 1.0, "constraints": 3.0}]),
    *[("raises", kind) for kind in (
        ValueError, ZeroDivisionError, GrumpyError, StopIteration, MuteError, cylbo.SpaceExhaustedError,
        cylbo.StorageError, OSError, MemoryError,
    )],
    ("interrupts", Interrupt),
]

# ---- what may lie in a file

JSON_VALUES = [
    None, True, False, 0, 1, -1, 3, 1.5, -0.0, 1e308, math.nan, math.inf, 10**30, 10**400, 2**60, "", "real", "a",
    "\ud800", "box", "maximize", [], {}, [1], [[]], [[1, 2]], [True, False], {"kind": "real"},
    {"kind": "real", "low": 0, "high": 1}, [None, None], [1e300] * 3,
]
CELLS = [
    None, 0, -1, 3, 2**62, 1.5, math.inf, "", "x", "null", "[]", "{}", "[", "[" * 100_000, "1" * 5000, "NaN", "0",
    '"a"', b"", b"\0" * 8, b"\xff" * 8, b"\xff" * 16, "done", "open", "failed",
]
FOREIGN = [b"", b"hello", b"SQLite format 3\0", b"\0" * 4096, b"\xff\x00\x55" * 999]
FOREIGN_SCRIPTS = ["CREATE TABLE trials (id)", "PRAGMA application_id=1668770930; CREATE TABLE header (x)"]

# ---- parameters: positional arguments and options


def _numbers(pairs, **options):
    return [(pair, options) for pair in pairs]


def _varied(name, values, *arguments, **options):
    return [(arguments, {**options, name: value}) for value in values]


GOOD_PARAMETERS = {
    Real: [
        *_numbers([(0, 1), (-1e300, 1e300), (Fraction(1, 3), np.float32(1)), (np.int8(-1), 10**20), (0.0, 1e-300)]),
        *_numbers([(1e-300, 1e300), (5e-324, 1.0), (1, 9)], log=True),
        *_varied("shape", [2, (2, 3), [np.int64(1)], [], (), 2.0], 0, 1),
        *_varied("log", [True, False, np.bool_(True)], 1, 2),
        *_varied("default", [0, 1.0, np.float32(0.5), None], 0, 1),
        *_varied("default", [0.5, [0, 1], np.zeros(2)], 0, 1, shape=2),
    ],
    Integer: [
        *_numbers([(0, 1), (-(2**53), 2**53), (np.int8(1), np.uint64(9)), (0.0, 1e2), (np.float32(1), 2)]),
        *_numbers([(1, 2), (1, 10**6)], log=True),
        *_varied("default", [np.int8(4), 4.0, None], 0, 9),
        *_varied("default", [3, [[1, 2], [3, 1]]], 1, 3, shape=(2, 2)),
    ],
    Categorical: [
        *_varied("choices", [["a", "b"], (None, True, 0, 2.5, "x"), range(5), ["\ud800", "\0"], [math.inf, 1e308]]),
        *_varied("choices", [np.array([1, 2]), np.array(["a", "b"]), np.array([None, 0.5], object)]),
        *_varied("default", ["b", ..., None], ["a", "b"]),
        *_varied("default", [None, "a"], ["a", None]),
    ],
    Space: [
        (({"a": Real(0, 1)},), {}), ((), {"a": Boolean()}), (({"1 a": Real(0, 1)},), {"b": Integer(0, 3)}),
        ((None,), {"parameters": Boolean()}),
    ],
}
BAD_PARAMETERS = {
    Real: [
        *_numbers([
            ("0", 1), (None, 1), (math.nan, 1), (0, math.inf), (False, True), (0, 1j), (Decimal(0), 1), (0, 10**400),
            (1, 0), (1, 1), (0.0, 5e-324), (1, 1 + 1e-12), (-1e308, 1e308), (Grumpy(), 1), (GrumpyInteger(), 1),
            (0, HUGE), ([0], [1]), (np.array(0.0), 1), (Number(0.0), 1), (0, Number("1")), (), (0,), (0, 1, 2),
        ]),
        *_numbers([(0, 1), (-1, 1), (1, 1 + 1e-12), (5e-324, 1e-323), (1e-320, 1.1e-320)], log=True),
        *_varied("shape", [
            0, -1, 1.5, "ab", None, True, (2, 0), [[2]], 10**12, 10**30, (10**6, 10**6), np.array([2, 3]), Grumpy(),
            GrumpyInteger(), (2, True), {2},
        ], 0, 1),
        *_varied("default", [
            2, math.nan, "0", [0.5], True, 1j, 10**400, HUGE, np.ma.masked, Grumpy(), object(), ENDLESS,
        ], 0, 1),
        *_varied("default", [
            7, [0.5], [0.5, 2.0], [[0.5, 0.5]], False, ENDLESS, np.zeros(3), {},
        ], 0, 1, shape=2),
        *_varied("log", BAD_FLAGS, 1, 2), ((0,), {"high": 1, "width": 2}), ((0, 1), {"lgo": True}),
    ],
    Integer: [
        *_numbers([
            (0.5, 1), (0, 1.5), (math.nan, 1), ("0", 1), (None, 1), (True, 2), (0, 2**54), (0, HUGE), (1, 0), (1, 1),
            (0, math.inf), (0, 1j), (Fraction(0), 1), (Grumpy(), 1), (0, GrumpyInteger()), ([0], 1),
        ]),
        *_varied("shape", [0, "a", 10**12], 0, 1),
        *_varied("default", [0.5, "1", 10, True, Grumpy()], 0, 9),
        *_varied("log", BAD_FLAGS, 1, 2), ((0, 5), {"log": True}), ((0, 9), {"shape": 2, "default": [1, 1.5]}),
    ],
    Categorical: [
        *_varied("choices", [
            "ab", [], ["a"], [1, 1], [1, True], [0, 0.0], [math.nan, 1], [np.float64(1), 2], [object(), 1], {1, 2},
            None, 3, iter("ab"), {"a": 1, "b": 2}, [[1], [2]], [1j, 2], [b"a", "b"], Grumpy(), [Grumpy(), 1], b"ab",
            np.array([[1, 2], [3, 4]]), np.array(1), np.ma.array([1, 2, 3], mask=[0, 1, 0]), np.array([1.0, math.nan]),
            [Decimal(1), 2],
        ]),
        *_varied("default", ["c", 0, ["a"], math.nan, b"a", object(), ENDLESS], ["a", "b"]),
        ((), {}), ((["a", "b"], 2), {}), (("relu", "gelu"), {}), ((["a", "b"],), {"defaults": "a"}),
    ],
    Space: [
        *[((parameters,), {}) for parameters in (
            None, 3, "a", [("a", Real(0, 1))], {}, {"a": 1}, {1: Real(0, 1)}, {"a": Real}, {"a": None}, Grumpy(),
            {"a": Grumpy()}, {None: Boolean()}, {"a": {"b": Real(0, 1)}}, {"a": (0, 1)}, Real(0, 1),
            {("a",): Boolean()},
        )],
        (({"a": Real(0, 1)},), {"a": Real(0, 1)}), ((), {}), ((), {"a": 3}), (({}, {}), {}),
    ],
}
# fmt: on
