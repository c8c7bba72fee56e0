"""Named parameters: values <-> user vectors <-> what the model sees, what is refused, and JSON."""

import itertools
import json
import math
import sys
from enum import StrEnum

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import cylbo
from cylbo import Boolean, Categorical, Integer, Real, Space
from cylbo.space.parameters import LARGEST_INTEGER
from cylbo.space.space import CLIMBED_LEVELS

EPS = np.finfo(float).eps
NAMES = {"Space": Space, "Real": Real, "Integer": Integer, "Categorical": Categorical, "Boolean": Boolean}

MIXED = Space(
    lr=Real(1e-5, 1e-1, log=True),
    depth=Integer(1, 12),
    act=Categorical(["relu", "gelu", "tanh"]),
    bias=Boolean(),
    w=Real(-1, 3, shape=(2, 2)),
    n=Integer(1, 1000, log=True, shape=3),
)
POINT = {
    "lr": 1e-3, "depth": 12, "act": "tanh", "bias": True, "w": [[-1.0, 3.0], [1.0, 0.0]], "n": [1, 1000, 30],
}  # fmt: skip
ENDLESS = []
ENDLESS.append(ENDLESS)


def column(*values):
    return np.array(values, dtype=float)[:, None]


def round_trip(parameter, u):
    return parameter.decode(parameter.encode(u))


# ---- real numbers


@st.composite
def ranges(draw):
    """Linear ranges on scales from 1e-100 to 1e100, often far from 0 for their width."""
    scale, offset = 10.0 ** draw(st.integers(-100, 100)), draw(st.floats(-1.0, 1.0)) * 10.0 ** draw(st.integers(-2, 6))
    return scale * offset, scale * (offset + 10.0 ** draw(st.floats(-1.0, 1.0)))


@given(ranges(), st.floats(0.0, 1.0))
def test_a_real_number_survives_the_way_to_the_model_and_back(ends, share):
    low, high = ends
    value = min(max(low + share * (high - low), low), high)
    parameter = Real(low, high)
    z = parameter.encode(column(value))
    size = max(abs(low), abs(high)) + (high - low)
    assert z.item() == pytest.approx(2 * share - 1, abs=8 * EPS * size / (high - low))
    back = parameter.decode(z).item()
    assert abs(back - value) <= 8 * EPS * size
    assert low <= back <= high


@given(st.floats(-300.0, 299.0), st.floats(0.1, 600.0), st.floats(0.0, 1.0))
def test_on_a_log_scale_it_is_the_exponent_that_is_affine(start, decades, share):
    low, high = 10.0**start, 10.0 ** min(start + decades, 300.0)
    parameter = Real(low, high, log=True)
    value = min(max(10.0 ** (start + share * (min(start + decades, 300.0) - start)), low), high)
    z = parameter.encode(column(value)).item()
    assert z == pytest.approx(2 * share - 1, abs=1e-11)
    back = parameter.decode(column(z)).item()
    assert back == pytest.approx(value, rel=1e-12)
    assert low <= back <= high


@pytest.mark.parametrize(
    ("parameter", "values"),
    [
        (Real(-1e308, 7e307), (-1e308, -1.5e307, 7e307)),
        (Real(0.0, 1e-300), (0.0, 0.5e-300, 1e-300)),
        (Real(-4.0, 4.0), (-4.0, 0.0, 4.0)),
        (Real(1e-300, 1e300, log=True), (1e-300, 1.0, 1e300)),
        (Real(1e-4, 1e4, log=True), (1e-4, 1.0, 1e4)),
        (Integer(-7, 7), (-7.4999999999, 0.0, 7.4999999999)),
    ],
    ids=repr,
)
def test_the_ends_and_the_middle_of_a_range_are_minus_one_zero_and_one(parameter, values):
    np.testing.assert_allclose(parameter.encode(column(*values))[:, 0], [-1.0, 0.0, 1.0], atol=1e-10)


def test_a_log_range_from_the_smallest_number_on_never_underflows():
    parameter = Real(5e-324, 1e-300, log=True)
    with np.errstate(all="raise"):
        assert parameter.decode(column(-1.0 - 1e-15, -1.0)).tolist() == [[5e-324]] * 2


@pytest.mark.parametrize("low", [5e-324, 1e-300, 1.0])
def test_a_log_range_up_to_the_largest_number_never_leaves_it(low):
    parameter = Real(low, sys.float_info.max, log=True)
    back = parameter.decode(column(-1.0 - 1e-15, -1.0, 1.0, 1.0 + 1e-15))[:, 0]
    assert ((back >= low) & (back <= sys.float_info.max)).all()
    np.testing.assert_allclose(back[2:], sys.float_info.max, rtol=1e-12)


# ---- integers


@pytest.mark.parametrize(
    ("low", "high", "log"),
    [
        (0, 1, False),
        (-1, 0, False),
        (-50, -3, False),
        (0, 300, False),
        (1, 2, True),
        (1, 300, True),
        (90, 400, True),
        (-(2**53), -(2**53) + 5, False),
        (2**53 - 5, 2**53, False),
        (2**40, 2**40 + 9, False),
    ],
)
def test_every_integer_is_reached_and_has_its_own_cell(low, high, log):
    parameter = Integer(low, high, log=log)
    integers = column(*range(low, high + 1))
    assert np.array_equal(round_trip(parameter, integers), integers)
    z = np.linspace(-1.0, 1.0, 20 * (high - low + 1) * (20 if log else 1))[:, None]
    reached = parameter.decode(z)[:, 0]
    assert set(reached.tolist()) == set(integers[:, 0].tolist())
    assert (np.diff(reached) >= 0).all()  # each in one piece
    assert parameter.levels == high - low + 1
    assert parameter.listed() == integers[:, 0].tolist()


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3, 3), (10, 41)])
def test_cells_of_integers_are_of_equal_width_with_the_integer_in_the_middle(low, high):
    n = high - low + 1
    middles = -1.0 + (2.0 * np.arange(n) + 1.0) / n
    parameter = Integer(low, high)
    np.testing.assert_allclose(parameter.encode(column(*range(low, high + 1)))[:, 0], middles, atol=1e-14)
    for shift in (-0.999 / n, 0.999 / n):
        assert parameter.decode((middles + shift)[:, None])[:, 0].tolist() == list(range(low, high + 1))


def test_cells_of_integers_on_a_log_scale_are_as_wide_as_their_logarithms():
    """An integer k lies at log k between log(low - 1/2) and log(high + 1/2), its cell ends at log(k + 1/2)."""
    low, high = 1, 64
    k = np.arange(low, high + 1.0)
    total = math.log((high + 0.5) / (low - 0.5))
    parameter = Integer(low, high, log=True)
    at = 2.0 * np.log(k / (low - 0.5)) / total - 1.0
    np.testing.assert_allclose(parameter.encode(k[:, None])[:, 0], at, atol=1e-13)
    edges = 2.0 * np.log((k + 0.5) / (low - 0.5)) / total - 1.0
    assert np.array_equal(parameter.decode(edges[:, None] - 1e-9)[:, 0], k)
    assert np.array_equal(parameter.decode(edges[:-1, None] + 1e-9)[:, 0], k[1:])


@given(st.data())
@settings(max_examples=200)
def test_an_integer_survives_the_way_to_the_model_and_back(data):
    """Exactly, unless the range is wider than the model's coordinate has numbers."""
    low = data.draw(st.integers(-LARGEST_INTEGER, LARGEST_INTEGER - 1))
    high = data.draw(st.integers(low + 1, LARGEST_INTEGER) | st.integers(low + 1, min(low + 50, LARGEST_INTEGER)))
    k = data.draw(st.integers(low, high) | st.sampled_from([low, high]))
    parameter = Integer(low, high)
    back = int(round_trip(parameter, column(k)).item())
    assert low <= back <= high
    assert abs(back - k) <= (0 if high - low < 2**50 else 16)


@given(st.data())
@settings(max_examples=200)
def test_an_integer_survives_a_log_scale_exactly_up_to_a_thousand_billions(data):
    low = data.draw(st.integers(1, 10**12) | st.integers(1, 100))
    high = data.draw(st.integers(low + 1, 10**12 + 1) | st.integers(low + 1, low + 50))
    k = data.draw(st.integers(low, high) | st.sampled_from([low, high]))
    assert round_trip(Integer(low, high, log=True), column(k)).item() == k


# ---- categories


@pytest.mark.parametrize("n", [2, 3, 4, 9])
def test_categories_are_equally_far_from_one_another_at_corners_of_the_cube(n):
    parameter = Categorical([f"c{i}" for i in range(n)])
    z = parameter.encode(column(*range(n)))
    assert set(np.unique(z)) == {-1.0, 1.0}
    assert z.shape == (n, 1 if n == 2 else n) == (n, parameter.width)
    distances = {round(float(np.linalg.norm(a - b)), 12) for a, b in itertools.combinations(z, 2)}
    assert distances == {2.0 if n == 2 else round(2.0 * math.sqrt(2.0), 12)}


@pytest.mark.parametrize("n", [2, 3, 4, 9])
def test_a_category_is_that_of_the_nearest_corner(n):
    parameter = Categorical(list(range(n)))
    corners = parameter.encode(column(*range(n)))
    z = np.random.default_rng(n).uniform(-1, 1, (500, parameter.width))
    nearest = np.linalg.norm(z[:, None] - corners, axis=-1).argmin(-1)
    assert np.array_equal(parameter.decode(z)[:, 0], nearest)
    assert set(nearest.tolist()) == set(range(n)) == set(parameter.listed())


# ---- snapped and redrawn


def neighbourhood(space, n=400, seed=0):
    return np.random.default_rng(seed).uniform(-1.0, 1.0, (n, space.dim))


def reals_of(space):
    """Which coordinates of the model, and which scalars, are real numbers."""
    each = space.parameters.values()
    return (
        np.concatenate([np.full(p.width, isinstance(p, Real)) for p in each]),
        np.concatenate([np.full(p.size, isinstance(p, Real)) for p in each]),
    )


def test_the_mixed_space_has_the_sizes_it_should_have():
    assert MIXED.size == 1 + 1 + 1 + 1 + 4 + 3
    assert MIXED.dim == 1 + 1 + 3 + 1 + 4 + 3
    assert MIXED.n_points == math.inf
    assert MIXED.jumps.tolist() == [False, True, True, True, True, True] + [False] * 7
    assert not MIXED.is_real
    assert Space(a=Real(0, 1), b=Real(0, 1, shape=2)).is_real


@pytest.mark.parametrize("levels", [CLIMBED_LEVELS, CLIMBED_LEVELS + 1])
def test_integers_with_many_values_are_climbed_and_with_few_are_not(levels):
    assert Space(k=Integer(1, levels)).jumps.tolist() == [levels <= CLIMBED_LEVELS]


def test_snapped_points_are_the_nearest_that_can_be_evaluated():
    """Brute force over all integers and categories; real coordinates stay as they are."""
    space = Space(r=Real(0, 1), k=Integer(-2, 4), c=Categorical(["a", "b", "c"]), b=Boolean(), l=Integer(1, 3))
    z = neighbourhood(space)
    every = np.array(list(itertools.product([0.0], range(-2, 5), range(3), range(2), range(1, 4))), dtype=float)
    lattice = space.encode(every)[:, 1:]
    nearest = lattice[np.linalg.norm(z[:, None, 1:] - lattice, axis=-1).argmin(-1)]
    snapped = space.snapped(z)
    assert np.array_equal(snapped[:, 0], z[:, 0])
    assert np.array_equal(snapped[:, 1:], nearest)


def test_what_is_snapped_stays_where_it_is_and_decodes_to_the_same_point():
    z = neighbourhood(MIXED)
    before = z.copy()
    snapped = MIXED.snapped(z)
    assert np.array_equal(z, before)
    assert np.array_equal(MIXED.snapped(snapped), snapped)
    assert np.array_equal(MIXED.decode(snapped), MIXED.decode(z))
    reals, _ = reals_of(MIXED)
    assert np.array_equal(snapped[:, reals], z[:, reals])
    assert (snapped[:, ~reals] != z[:, ~reals]).any(0).all()


def test_redrawn_points_keep_the_real_numbers_and_change_something_else():
    z = neighbourhood(MIXED, 2000)
    before = z.copy()
    other = MIXED.redrawn(z, np.random.default_rng(1))
    assert np.array_equal(z, before)
    reals, real_scalars = reals_of(MIXED)
    assert np.array_equal(other[:, reals], z[:, reals])
    assert np.array_equal(MIXED.snapped(other), other)
    changed = MIXED.decode(other) != MIXED.decode(z)
    assert not changed[:, real_scalars].any()
    assert changed[:, ~real_scalars].any(0).all()
    # One of the m scalars for certain, each of the others with a chance of 1 / (2 m)
    m = int((~real_scalars).sum())
    count = changed.sum(-1)
    assert count.min() == 1
    assert count.mean() == pytest.approx(1 + (m - 1) / (2 * m), abs=5 * math.sqrt(0.5 / 2000))


DISCRETE = {
    "integer": Integer(0, 5),
    "width 1": Integer(7, 8),
    "log": Integer(1, 1000, log=True),
    "large": Integer(2**53 - 3, 2**53),
    "array": Integer(-2, 2, shape=2),
    "two": Categorical(["a", "b"]),
    "three": Categorical(["a", "b", "c"]),
    "boolean": Boolean(),
}


@pytest.mark.parametrize("parameter", DISCRETE.values(), ids=DISCRETE)
def test_a_discrete_value_is_redrawn_as_another_also_at_its_bounds(parameter):
    listed = parameter.listed()
    u = np.tile(np.array(listed[:3] + listed[-3:])[:, None], (200, parameter.size))
    other = parameter.redrawn(u, np.random.default_rng(0))
    assert other.shape == u.shape
    assert (other != u).all()
    assert set(other.ravel().tolist()) <= set(listed)
    if len(listed) <= 6:
        for value in listed[:3]:
            reached = set(other[u == value].tolist())
            assert reached == set(listed) - {value}


def test_an_integer_is_redrawn_next_to_itself_half_of_the_time_and_anywhere_otherwise():
    n = 4000
    other = Integer(0, 999).redrawn(np.full((n, 1), 500.0), np.random.default_rng(2))
    next_to = np.abs(other - 500.0) == 1.0
    assert next_to.mean() == pytest.approx(0.5, abs=5 * 0.5 / math.sqrt(n))
    assert {499.0, 501.0} <= set(other[:, 0].tolist())
    # Anywhere: uniform, with mean 499.5 and standard deviation 1000 / sqrt(12)
    anywhere = other[~next_to]
    assert anywhere.mean() == pytest.approx(499.5, abs=5 * 289 / math.sqrt(len(anywhere)))
    assert anywhere.std() == pytest.approx(289, rel=0.1)


def test_a_space_of_real_numbers_has_nothing_to_snap_or_redraw():
    space = Space(a=Real(0, 1), b=Real(1, 10, log=True, shape=2))
    z = neighbourhood(space)
    assert np.array_equal(space.snapped(z), z)
    assert np.array_equal(space.redrawn(z, np.random.default_rng(0)), z)


# ---- values and vectors


def test_a_point_by_hand():
    u = MIXED.vector(POINT, "x0")
    assert u.tolist() == [1e-3, 12.0, 2.0, 1.0, -1.0, 3.0, 1.0, 0.0, 1.0, 1000.0, 30.0]
    wide = math.log(1000.5 / 0.5)
    expected = [0.0, 11 / 12, -1.0, -1.0, 1.0, 1.0, -1.0, 1.0, 0.0, -0.5]
    expected += [2 * math.log(k / 0.5) / wide - 1 for k in (1, 1000, 30)]
    np.testing.assert_allclose(MIXED.encode(u[None])[0], expected, atol=1e-14)
    np.testing.assert_allclose(MIXED.decode(MIXED.encode(u[None]))[0], u, rtol=1e-14, atol=1e-15)


def test_values_are_of_plain_python_and_arrays_of_numpy():
    params = MIXED.params(MIXED.vector(POINT, "x0"))
    assert list(params) == list(POINT)
    assert {name: type(value) for name, value in params.items()} == {
        "lr": float, "depth": int, "act": str, "bias": bool, "w": np.ndarray, "n": np.ndarray,
    }  # fmt: skip
    assert (params["w"].dtype, params["w"].shape) == (np.float64, (2, 2))
    assert (params["n"].dtype, params["n"].shape) == (np.int64, (3,))
    assert {name: np.asarray(value).tolist() for name, value in params.items()} == POINT


def test_arrays_among_the_values_are_copies():
    u = MIXED.vector(POINT, "x0")
    params = MIXED.params(u)
    params["w"][:], params["n"][:] = 0.0, 7
    assert np.array_equal(u, MIXED.vector(POINT, "x0"))


@pytest.mark.parametrize(
    "choices", [["a", "b"], [1, 2.5, "1", None, False], [None, False, 0.5], [math.inf, 1.0, 10**30]]
)
def test_every_choice_is_found_and_given_back_as_it_was(choices):
    space = Space(c=Categorical(choices))
    for i, choice in enumerate(choices):
        u = space.vector({"c": choice}, "x0")
        assert u.tolist() == [i]
        found = space.params(space.decode(space.encode(u[None]))[0])["c"]
        assert type(found) is type(choice)
        assert found == choice


def test_numbers_of_numpy_are_values_too():
    space = Space(r=Real(0, 1), k=Integer(0, 300), b=Boolean(), w=Integer(0, 9, shape=2))
    for r, k, b in [(np.float32(0.5), np.uint8(3), np.True_), (np.array(0.5), np.array(3), True), (0.5, 3.0, True)]:
        u = space.vector({"r": r, "k": k, "b": b, "w": np.array([1, 2], np.int8)}, "x0")
        assert u.dtype == np.float64
        assert u.tolist() == [0.5, 3.0, 1.0, 1.0, 2.0]


def test_the_order_of_names_in_a_dict_does_not_matter():
    assert np.array_equal(MIXED.vector(dict(reversed(POINT.items())), "x0"), MIXED.vector(POINT, "x0"))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"lr": 1.0}, ValueError, r"x0\['lr'\] must lie within \(1e-05, 0.1\), got 1.0"),
        ({"lr": math.nan}, ValueError, r"x0\['lr'\] must lie within"),
        ({"lr": -math.inf}, ValueError, r"x0\['lr'\] must lie within"),
        ({"lr": np.nextafter(0.1, 1.0)}, ValueError, r"x0\['lr'\] must lie within"),
        ({"lr": "0.01"}, TypeError, r"x0\['lr'\] must be one number, got '0.01'"),
        ({"lr": None}, TypeError, r"x0\['lr'\] must be one number"),
        ({"lr": 0.01j}, TypeError, r"x0\['lr'\] must be one number"),
        ({"lr": ENDLESS}, TypeError, r"x0\['lr'\] must be one number, got \[\[\.\.\.\]\]"),
        ({"lr": [0.01]}, TypeError, r"x0\['lr'\] must be one number"),
        ({"depth": 0}, ValueError, r"x0\['depth'\] must lie within \(1, 12\), got 0"),
        ({"depth": 13}, ValueError, r"x0\['depth'\] must lie within"),
        ({"depth": 2.5}, ValueError, r"x0\['depth'\] must be a whole number, got 2.5"),
        ({"depth": math.nan}, ValueError, r"x0\['depth'\]"),
        ({"depth": True}, TypeError, r"x0\['depth'\] must be one number, got True"),
        ({"depth": 10**400}, TypeError, r"x0\['depth'\] must be one number"),
        ({"act": "Relu"}, ValueError, r"x0\['act'\] must be one of 'relu', 'gelu', 'tanh'; got 'Relu'"),
        ({"act": 0}, ValueError, r"x0\['act'\] must be one of"),
        ({"act": ["relu"]}, ValueError, r"x0\['act'\] must be one of"),
        ({"act": np.array(["relu", "gelu"])}, ValueError, r"x0\['act'\] must be one of"),
        ({"bias": 1}, ValueError, r"x0\['bias'\] must be one of False, True; got 1"),
        ({"bias": "True"}, ValueError, r"x0\['bias'\] must be one of"),
        ({"w": 0.0}, TypeError, r"x0\['w'\] must be an array of numbers of shape \(2, 2\), got 0.0"),
        ({"w": [0.0] * 4}, TypeError, r"x0\['w'\] must be an array of numbers of shape \(2, 2\)"),
        ({"w": [[0.0, 1.0], [2.0]]}, TypeError, r"x0\['w'\] must be an array of numbers of shape \(2, 2\)"),
        ({"w": [[0.0, 1.0], [2.0, True]]}, TypeError, r"x0\['w'\] must be an array of numbers of shape \(2, 2\)"),
        ({"w": np.ma.array(np.ones((2, 2)), mask=np.eye(2))}, TypeError, r"x0\['w'\] must be an array of numbers"),
        ({"w": np.ones((2, 2), bool)}, TypeError, r"x0\['w'\] must be an array of numbers of shape \(2, 2\)"),
        ({"w": [[0.0, 1.0], [2.0, math.nan]]}, ValueError, r"x0\['w'\] must lie within \(-1.0, 3.0\)"),
        ({"n": [1, 2, 1001]}, ValueError, r"x0\['n'\] must lie within \(1, 1000\)"),
        ({"n": [1, 2, 2.5]}, ValueError, r"x0\['n'\] must be a whole number"),
        ({"nn": 3}, ValueError, r"missing \[\], unknown \['nn'\]"),
        ({"lr": ..., "depth": ...}, ValueError, r"missing \['lr', 'depth'\], unknown \[\]"),
    ],
)
def test_a_bad_value_gets_a_clear_error_that_names_the_parameter(change, error, message):
    params = {name: value for name, value in {**POINT, **change}.items() if value is not ...}
    with pytest.raises(error, match=message):
        MIXED.vector(params, "x0")


@pytest.mark.parametrize("params", [None, 3, "lr", [1e-3], list(POINT.items()), np.zeros(11)])
def test_a_point_that_is_no_dict_gets_a_clear_error(params):
    with pytest.raises(TypeError, match=r"x0 must be a dict of lr, depth, act, bias, w, n, got"):
        MIXED.vector(params, "x0")


# ---- defaults


DEFAULTS = Space(
    lr=Real(1e-5, 1e-1, log=True, default=3e-4),
    depth=Integer(1, 12, default=12),
    act=Categorical(["relu", "gelu", None], default=None),
    bias=Boolean(default=True),
    w=Real(-1, 3, shape=(2, 2), default=[[-1, 3], [0.5, 0]]),
    n=Integer(1, 1000, log=True, shape=3, default=np.int8(7)),
)
SET = {"lr": 3e-4, "depth": 12, "act": None, "bias": True, "w": [[-1.0, 3.0], [0.5, 0.0]], "n": [7, 7, 7]}


def test_the_middle_is_where_the_defaults_are():
    assert {name: np.asarray(value).tolist() for name, value in DEFAULTS.params(DEFAULTS.middle).items()} == SET
    assert np.array_equal(MIXED.middle, MIXED.decode(np.zeros((1, MIXED.dim)))[0])
    half = Space(a=Real(0, 4), b=Real(0, 4, default=1.0), c=Categorical(["x", "y"]), d=Categorical([1, 2], default=2))
    assert half.params(half.middle) == {"a": 2.0, "b": 1.0, "c": "x", "d": 2}


def test_none_is_no_default_unless_it_is_a_choice():
    for parameter in (Real(0, 1, default=None), Integer(0, 1, default=None), Boolean(default=None)):
        assert parameter.default is None
    assert Categorical(["a", "b"], default=None).default is None
    assert Categorical(["a", None]).default is None
    assert Categorical(["a", None], default=None).default.tolist() == [1.0]


def test_one_number_is_the_default_of_every_entry_of_an_array():
    one, each = Real(0, 1, shape=(2, 3), default=0.25), Real(0, 1, shape=(2, 3), default=np.full((2, 3), 0.25))
    assert Space(a=one) == Space(a=each)
    assert repr(one) == repr(each) == "Real(0.0, 1.0, shape=(2, 3), default=0.25)"
    assert one.default.tolist() == [0.25] * 6


def test_defaults_in_json_by_hand():
    numbers = {"low": -1.0, "high": 3.0, "log": False, "shape": [2, 2], "default": [[-1.0, 3.0], [0.5, 0.0]]}
    assert DEFAULTS.to_json()["parameters"][2:5] == [
        ["act", {"kind": "categorical", "choices": ["relu", "gelu", None], "default": None}],
        ["bias", {"kind": "boolean", "default": True}],
        ["w", {"kind": "real", **numbers}],
    ]
    assert not any("default" in fields for _, fields in MIXED.to_json()["parameters"])
    back = Space.from_json(json.loads(json.dumps(DEFAULTS.to_json())))
    assert np.array_equal(back.middle, DEFAULTS.middle)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Real(0, 1, default=1.5), ValueError, r"default of Real must lie within \(0.0, 1.0\), got 1.5"),
        (lambda: Real(0, 1, default=math.nan), ValueError, "default of Real must lie within"),
        (lambda: Real(0, 1, default="0.5"), TypeError, "default of Real must be one number, got '0.5'"),
        (lambda: Real(0, 1, default=True), TypeError, "default of Real must be one number, got True"),
        (lambda: Real(0, 1, default=[0.5]), TypeError, "default of Real must be one number"),
        (lambda: Real(0, 1, shape=2, default=[0.5]), TypeError, r"default of Real must be .* of shape \(2,\)"),
        (lambda: Real(0, 1, shape=2, default=[0.5, 1.5]), ValueError, "default of Real must lie within"),
        (lambda: Real(0, 1, shape=2, default=7), ValueError, "default of Real must lie within"),
        (lambda: Real(0, 1, shape=2, default=True), TypeError, "default of Real must be an array of numbers"),
        (lambda: Integer(0, 5, default=6), ValueError, r"default of Integer must lie within \(0, 5\), got 6"),
        (lambda: Integer(0, 5, default=0.5), ValueError, "default of Integer must be a whole number, got 0.5"),
        (lambda: Integer(0, 5, shape=2, default=0.5), ValueError, "default of Integer must be a whole number"),
        (lambda: Categorical([0, 1], default=True), ValueError, "default of Categorical must be one of 0, 1; got True"),
        (lambda: Categorical([0, 1], default=""), ValueError, "default of Categorical must be one of 0, 1; got ''"),
        (lambda: Boolean(default=1), ValueError, "default of Boolean must be one of False, True; got 1"),
    ],
)
def test_a_bad_default_gets_a_clear_error(make, error, message):
    with pytest.raises(error, match=message):
        make()


# ---- bad definitions


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Real(1, 0), r"Real expected low < high, got \(1, 0\); swap them"),
        (lambda: Real(1, 1), r"Real expected low < high, got \(1, 1\); leave a parameter that is fixed out"),
        (lambda: Real(math.nan, 1), r"Real expected a finite number as low, got nan"),
        (lambda: Real(0, math.inf), r"Real expected a finite number as high, got inf"),
        (lambda: Real(-math.inf, 0), r"Real expected a finite number as low"),
        (lambda: Real(False, 1), r"Real expected a finite number as low, got False"),
        (lambda: Real("0", 1), r"Real expected a finite number as low, got '0'"),
        (lambda: Real(0, None), r"Real expected a finite number as high, got None"),
        (lambda: Real(0, 1j), r"Real expected a finite number as high"),
        (lambda: Real(0, 10**400), r"Real expected a finite number as high"),
        (lambda: Real(-1.7e308, 1.7e308), r"told apart and subtracted"),
        (lambda: Real(1.0, 1.0 + 4 * EPS), r"told apart and subtracted"),
        (lambda: Real(1.0, 1.0 + 4 * EPS, log=True), r"told apart and subtracted"),
        (lambda: Real(0.0, 5e-324), r"told apart and subtracted"),
        (lambda: Real(5e-324, 1e-323, log=True), r"told apart and subtracted"),
        (lambda: Real(0, 1, log=True), r"Real on a log scale expected low > 0, got 0"),
        (lambda: Real(-1, 1, log=True), r"Real on a log scale expected low > 0"),
        (lambda: Integer(0, 5, log=True), r"Integer on a log scale expected low > 0"),
        (lambda: Integer(5, 0), r"Integer expected low < high, got \(5, 0\)"),
        (lambda: Integer(5, 5), r"Integer expected low < high, got \(5, 5\); leave a parameter that is fixed out"),
        (lambda: Integer(0.5, 5), r"Integer expected integers"),
        (lambda: Integer(0, 5.5), r"Integer expected integers"),
        (lambda: Integer(0, True), r"Integer expected integers"),
        (lambda: Integer("0", 5), r"Integer expected integers"),
        (lambda: Integer(0, math.nan), r"Integer expected integers"),
        (lambda: Integer(0, math.inf), r"Integer expected integers"),
        (lambda: Integer(0, 2**53 + 1), r"Integer expected integers up to 2\^53"),
        (lambda: Integer(-(2**53) - 1, 0), r"Integer expected integers up to 2\^53"),
    ],
)
def test_bad_bounds_get_a_clear_error(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("shape", [0, -1, 2.5, True, None, "23", (2, 0), (2, 1.5), (True,), ((1,),), ["a"], {2}])
@pytest.mark.parametrize("kind", [Real, Integer])
def test_a_bad_shape_gets_a_clear_error(kind, shape):
    with pytest.raises(ValueError, match=f"{kind.__name__} expected a shape of positive integers, got"):
        kind(0, 1, shape=shape)


@pytest.mark.parametrize("shape", [10**12, 10**400, (10**4, 10**4), [2] * 64], ids=["1e12", "1e400", "1e8", "2^64"])
@pytest.mark.parametrize("kind", [Real, Integer])
def test_more_numbers_than_memory_get_a_clear_error(kind, shape):
    with pytest.raises(
        ValueError, match=f"{kind.__name__} expected at most 10000000 numbers in an array, got a shape of"
    ):
        kind(0, 1, shape=shape)


@pytest.mark.parametrize("shape", [3, (3,), [3], np.int64(3), (np.int8(3),), 3.0, [3.0]])
def test_a_shape_may_be_a_number_or_a_sequence(shape):
    parameter = Real(0, 1, shape=shape)
    assert parameter.shape == (3,)
    assert type(parameter.shape[0]) is int


def test_integers_may_be_bounded_by_floats_without_a_fraction():
    assert repr(Integer(1.0, 5.0)) == repr(Integer(np.float32(1), 5)) == "Integer(1, 5)"
    assert repr(Integer(1.0, 1e3, log=True)) == "Integer(1, 1000, log=True)"
    assert Space(k=Integer(-3.0, 2)) == Space(k=Integer(-3, 2))


@pytest.mark.parametrize("log", ["True", "", "log", 1, 0, None, [], np.array(True)])
@pytest.mark.parametrize("kind", [Real, Integer])
def test_a_log_that_is_neither_true_nor_false_gets_a_clear_error(kind, log):
    with pytest.raises(TypeError, match=f"^log of {kind.__name__} must be True or False, got "):
        kind(1, 2, log=log)
    assert Space(a=kind(1, 2, log=np.True_)) == Space(a=kind(1, 2, log=True))


CHOICES = [np.array(["relu", "gelu"]), np.arange(3), np.array([0.5, 2.0]), np.array([True, False])]
CHOICES += [np.array(["a", None, 1], object), pd.Series(["x", "y"]), pd.Index([4, 8]), torch.tensor([1, 2])]


@pytest.mark.parametrize("choices", CHOICES, ids=repr)
def test_choices_may_be_an_array_and_become_plain_python(choices):
    parameter = Categorical(choices, default=choices.tolist()[-1])
    assert list(parameter.choices) == choices.tolist()
    assert not any(isinstance(choice, np.generic) for choice in parameter.choices)
    assert Space(c=parameter) == Space(c=Categorical(choices.tolist(), default=choices.tolist()[-1]))
    assert Space.from_json(json.loads(json.dumps(Space(c=parameter).to_json()))) == Space(c=parameter)


class Colour(StrEnum):
    RED = "red"


@pytest.mark.parametrize(
    ("choices", "error", "message"),
    [
        ([], ValueError, "at least two choices in a list, got"),
        (["a"], ValueError, r"at least two choices in a list, got \['a'\]; leave a parameter that is fixed out"),
        ("ab", ValueError, "at least two choices in a list, got 'ab'"),
        (b"ab", ValueError, "at least two choices in a list, got b'ab'"),
        ({"a", "b"}, ValueError, "at least two choices in a list"),
        (3, ValueError, "at least two choices in a list, got 3"),
        (None, ValueError, "at least two choices in a list, got None"),
        (np.array("ab"), ValueError, "at least two choices in a list, got array"),
        (np.array([["a", "b"], ["c", "d"]]), ValueError, "at least two choices in a list, got array"),
        (np.array(["a"]), ValueError, "at least two choices in a list, got array.*; leave a parameter that is fixed"),
        (np.ma.array([1, 2, 3], mask=[0, 1, 0]), ValueError, "at least two choices in a list, got masked_array"),
        (np.array([1.0, math.nan]), ValueError, "told apart, got NaN"),
        (np.array(["2020"], "M8[D]").repeat(2), TypeError, "of plain Python, got datetime.date"),
        (np.array([1, 1]), ValueError, "different choices, got 1 twice"),
        (["a", "b", "a"], ValueError, "different choices, got 'a' twice"),
        ([0, 1, True], ValueError, "different choices, got True twice"),
        ([1, 1.0], ValueError, "different choices, got 1.0 twice"),
        ([None, None], ValueError, "different choices, got None twice"),
        ([1.0, math.nan], ValueError, "told apart, got NaN"),
        (["a", ["b"]], TypeError, r"of plain Python, got \['b'\]"),
        (["a", {}], TypeError, "of plain Python, got {}"),
        (["a", np.zeros(2)], TypeError, "of plain Python, got array"),
        (["a", np.str_("b")], TypeError, "of plain Python, got np.str_"),
        ([np.float64(1), 2.0], TypeError, "of plain Python, got np.float64"),
        ([np.int64(1), 2], TypeError, "of plain Python, got np.int64"),
        ([Colour.RED, "blue"], TypeError, "of plain Python, got <Colour.RED"),
        ([1j, 2], TypeError, "of plain Python, got 1j"),
        ([b"a", "b"], TypeError, "of plain Python, got b'a'"),
        ([abs, max], TypeError, "of plain Python, got <built-in"),
    ],
)
def test_bad_choices_get_a_clear_error(choices, error, message):
    with pytest.raises(error, match=f"Categorical expected .*{message}"):
        Categorical(choices)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (Space, ValueError, "at least one parameter"),
        (lambda: Space({}), ValueError, "at least one parameter"),
        (lambda: Space(a=3), TypeError, "got 3 as 'a'"),
        (lambda: Space(a=(0, 1)), TypeError, r"got \(0, 1\) as 'a'"),
        (lambda: Space(a=Real), TypeError, "as 'a'"),
        (lambda: Space({1: Boolean()}), TypeError, r"got Boolean\(\) as 1"),
        (lambda: Space([("a", Boolean())]), TypeError, "expected a dict"),
        (lambda: Space("a"), TypeError, "expected a dict"),
        (lambda: Space({"a": Boolean()}, a=Real(0, 1)), ValueError, "every name once, got .'a'."),
    ],
)
def test_a_bad_space_gets_a_clear_error(make, error, message):
    with pytest.raises(error, match=message):
        make()


# ---- numbers of points


@pytest.mark.parametrize(
    ("space", "n"),
    [
        (Space(k=Integer(-1, 3)), 5),
        (Space(k=Integer(0, 1, shape=(2, 3)), b=Boolean()), 2**7),
        (Space(c=Categorical(["a", "b", "c"]), k=Integer(1, 4, log=True)), 12),
        (Space(k=Integer(0, 99, shape=500)), 100**500),
        (Space(k=Integer(0, 99), r=Real(0, 1)), math.inf),
        (Space(r=Real(0, 1), k=Integer(0, 99, shape=500)), math.inf),  # infinity times an integer beyond 1e308
    ],
    ids=["integers", "bits", "mixed", "huge", "real", "real and huge"],
)
def test_the_points_of_a_space_are_counted(space, n):
    assert space.n_points == n


# ---- equality, repr, JSON

SPACES = {
    "real": Space(a=Real(0.1, 0.7)),
    "log": Space(a=Real(1e-300, 1e300, log=True)),
    "reals": Space(a=Real(-1, 1, shape=(2, 3))),
    "integer": Space(a=Integer(-(2**53), 2**53)),
    "log integers": Space(a=Integer(1, 9, log=True, shape=4)),
    "choices": Space(a=Categorical(["x", "é\n'\"", 1, 2.5, None, False])),
    "integers as choices": Space(a=Categorical([0, 1])),
    "floats as choices": Space(a=Categorical([0.0, 1.0])),
    "truths as choices": Space(a=Categorical([False, True])),
    "boolean": Space(a=Boolean()),
    "choices the other way": Space(a=Categorical([1, 0])),
    "mixed": MIXED,
    "in another order": Space(dict(reversed(MIXED.parameters.items()))),
    "odd names": Space({"a b": Boolean(), "lambda": Real(0, 1), "": Integer(0, 1)}),
    "default of a real": Space(a=Real(0.1, 0.7, default=0.3)),
    "default of an integer": Space(a=Integer(-(2**53), 2**53, default=2**53)),
    "default of all reals": Space(a=Real(-1, 1, shape=(2, 3), default=0.1)),
    "defaults of reals": Space(a=Real(-1, 1, shape=(2, 3), default=[[0.1, 0.2, 0.3], [-0.1, -0.2, -0.3]])),
    "defaults of integers": Space(a=Integer(1, 9, log=True, shape=2, default=[9, 1])),
    "default of choices": Space(a=Categorical(["x", "é\n'\"", 1, 2.5, None, False], default="é\n'\"")),
    "False by default": Space(a=Categorical(["x", "é\n'\"", 1, 2.5, None, False], default=False)),
    "None by default": Space(a=Categorical(["x", "é\n'\"", 1, 2.5, None, False], default=None)),
    "default of a boolean": Space(a=Boolean(default=True)),
    "other default of a boolean": Space(a=Boolean(default=False)),
}


@pytest.mark.parametrize("name", SPACES)
def test_a_space_survives_json(name):
    space = SPACES[name]
    text = json.dumps(space.to_json())
    back = Space.from_json(json.loads(text))
    assert back == space
    assert json.dumps(back.to_json()) == text
    assert list(back.parameters) == list(space.parameters)
    u = space.decode(neighbourhood(space, 20))
    for a, b in zip(map(space.params, u), map(back.params, u), strict=True):
        assert repr(a) == repr(b)


@pytest.mark.parametrize("name", SPACES)
def test_the_repr_of_a_space_evaluates_to_it(name):
    assert eval(repr(SPACES[name]), dict(NAMES)) == SPACES[name]


def test_the_repr_of_a_space_reads_like_the_code_that_made_it():
    assert repr(Space(k=Integer(1, 9, log=True, shape=2), b=Boolean())) == (
        "Space(k=Integer(1, 9, log=True, shape=(2,)), b=Boolean())"
    )


def test_spaces_are_equal_to_themselves_only():
    for (a, one), (b, other) in itertools.product(SPACES.items(), SPACES.items()):
        assert (one == other) == (a == b), (a, b)
    assert SPACES["real"] != SPACES["real"].to_json()
    assert Space(a=Real(0, 1)) == Space({"a": Real(0.0, 1.0, shape=[])})


def test_a_space_cannot_be_hashed():
    with pytest.raises(TypeError, match="unhashable"):
        hash(MIXED)


REAL = {"kind": "real", "low": 0, "high": 1, "log": False, "shape": []}


@pytest.mark.parametrize(
    "stored",
    [
        None, 3, [], "", "parameters", {}, {"parameters": None}, {"parameters": 3}, {"parameters": []},
        {"parameters": [3]}, {"parameters": [["a"]]}, {"parameters": ["abc"]}, {"parameters": [["a", None]]},
        {"parameters": [["a", {}]]}, {"parameters": [["a", {"kind": "complex"}]]},
        {"parameters": [["a", {"kind": []}]]}, {"parameters": [["a", {"kind": "boolean", "low": 0}]]},
        {"parameters": [["a", {"kind": "categorical"}]]},
        {"parameters": [["a", {"kind": "categorical", "choices": 3}]]},
        {"parameters": [[3, REAL]]}, {"parameters": [["a", REAL], ["a", REAL]]},
        *({"parameters": [["a", {**REAL, **bad}]]} for bad in (
            {"low": 2}, {"low": "0"}, {"low": None}, {"high": 10**400}, {"high": math.nan}, {"shape": 0},
            {"shape": None}, {"default": 2}, {"default": [0]}, {"default": "x"},
            {"shape": [[1]]}, {"extra": 1}, {"kind": "integer", "high": 1.5}, {"log": True},
        )),
    ],
    ids=lambda stored: json.dumps(stored)[:60],
)  # fmt: skip
def test_json_of_anything_else_is_refused(stored):
    with pytest.raises(ValueError, match=r"expected what Space.to_json gave, got"):
        Space.from_json(stored)


def test_the_kinds_are_exported():
    for name, kind in NAMES.items():
        assert getattr(cylbo, name) is kind


@pytest.mark.parametrize("of", [dict, lambda parameters: list(parameters.values()), lambda p: tuple(p.values())])
def test_parameters_without_a_space_are_told_where_to_go(of):
    parameters = {"a": Real(0, 1), "b": Integer(1, 3)}
    with pytest.raises(TypeError, match=r"bounds must be .* cylbo.Space\(a=..., b=...\), from a dict with"):
        cylbo.Optimizer(of(parameters))
    assert cylbo.Optimizer(cylbo.Space(**parameters)).ask().params == {"a": 0.5, "b": 2}


@pytest.mark.parametrize("value", [32, np.int64(32), np.array([32, 64])[0]])
def test_a_choice_may_come_out_of_an_array(value):
    space = cylbo.Space(batch=Categorical([32, 64]), name=Categorical(["x", "y"]))
    opt = cylbo.Optimizer(space, x0=[{"batch": value, "name": np.str_("y")}])
    params = opt.ask().params
    assert params == {"batch": 32, "name": "y"}
    assert [type(v) for v in params.values()] == [int, str]
