"""Bounds and centre: what is refused, and user units <-> ball coordinates."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

import cylbo
from cylbo.space.box import Box

EPS = np.finfo(float).eps


@st.composite
def boxes(draw):
    """Bounds of 1 to 6 parameters on scales from 1e-100 to 1e100, often far from 0 for their width."""
    d = draw(st.integers(1, 6))
    unit = st.floats(-1.0, 1.0, allow_subnormal=False)
    low, high = [], []
    for _ in range(d):
        scale = 10.0 ** draw(st.integers(-100, 100))
        offset = draw(unit) * 10.0 ** draw(st.integers(-2, 6))
        width = 10.0 ** draw(st.floats(-1.0, 1.0))
        low.append(scale * offset)
        high.append(scale * (offset + width))
    return np.array([low, high]).T


def points(draw, bounds):
    """A point of the box, its faces and corners included."""
    share = np.array(draw(st.lists(st.floats(0.0, 1.0), min_size=len(bounds), max_size=len(bounds))))
    low, high = bounds.T
    return np.clip(low + share * (high - low), low, high)


@given(st.data(), boxes())
@settings(max_examples=150, deadline=None)
def test_user_units_survive_the_way_to_the_ball_and_back(data, bounds):
    center, x = points(data.draw, bounds), points(data.draw, bounds)
    space = Box(bounds, center)
    low, high = bounds.T
    back = space.to_user(space.to_ball(x))
    rounding = 8 * EPS * (np.maximum(abs(low), abs(high)) + (high - low))
    assert np.all(abs(back - x) <= rounding)
    assert np.all((back >= low) & (back <= high))


@given(st.data(), boxes())
@settings(max_examples=150, deadline=None)
def test_the_centre_is_exactly_zero_and_zero_exactly_the_centre(data, bounds):
    center = points(data.draw, bounds)
    space = Box(bounds, center)
    assert not space.to_ball(center).any()
    assert not space.to_ball(np.stack([bounds[:, 0], center]))[1].any()
    assert np.array_equal(space.to_user(np.zeros(len(bounds))), center)


@given(st.data(), boxes())
@settings(max_examples=100, deadline=None)
def test_ball_coordinates_survive_the_way_to_user_units_and_back(data, bounds):
    space = Box(bounds, points(data.draw, bounds), "ball")
    z = np.array(data.draw(st.lists(st.floats(-3.0, 3.0), min_size=len(bounds), max_size=len(bounds))))
    low, high = bounds.T
    rounding = 16 * EPS * (1.0 + np.maximum(abs(low), abs(high)) / (high - low))
    assert np.all(abs(space.to_ball(space.to_user(z)) - z) <= 4 * rounding + 4 * EPS * abs(z))


@given(st.data(), boxes())
@settings(max_examples=50, deadline=None)
def test_the_ball_reaches_the_farthest_corner(data, bounds):
    space = Box(bounds, points(data.draw, bounds))
    d = len(bounds)
    corners = np.stack(np.meshgrid(*bounds, indexing="ij"), -1).reshape(-1, d)
    farthest = np.linalg.norm(space.to_ball(corners), axis=-1).max()
    assert space.domain.radius == pytest.approx(farthest, rel=1e-9)
    assert math.sqrt(d) * (1 - 1e-9) <= space.domain.radius <= 2 * math.sqrt(d) * (1 + 1e-9)


def test_ball_coordinates_by_hand():
    space = Box([(0.0, 10.0), (-4.0, 4.0)], center=[2.5, 2.0])
    assert space.to_ball(np.array([10.0, -4.0])).tolist() == [1.5, -1.5]
    assert space.to_user(np.array([-0.5, 0.5])).tolist() == [0.0, 4.0]
    assert space.domain.low.tolist() == [-0.5, -1.5]
    assert space.domain.high.tolist() == [1.5, 0.5]
    assert space.domain.radius == pytest.approx(math.hypot(1.5, 1.5))


def test_the_middle_is_the_default_centre_with_radius_sqrt_d():
    space = Box([(-1, 3)] * 7)
    assert space.center.tolist() == [1.0] * 7
    assert space.domain.radius == pytest.approx(math.sqrt(7), rel=1e-15)
    assert space.dim == 7


def test_a_ball_beyond_the_largest_number_is_refused_and_one_up_to_it_is_not():
    wide = [(-8e307, 8e307)] * 2
    assert Box(wide).to_user(np.array([1.0, -1.0])).tolist() == [8e307, -8e307]
    with pytest.raises(ValueError, match=r"ball around bounds as wide as these .* keep to region='box'"):
        Box(wide, region="ball")
    with pytest.raises(ValueError, match="ball around bounds"):
        Box([(-4e307, 4e307)] * 2 + [(0, 1)] * 40, region="ball")
    space = Box([(-4e307, 4e307)] * 2, region="ball")
    for direction in ([1.0, 0.0], [0.0, -1.0], [0.6, 0.8]):
        assert np.isfinite(space.to_user(space.domain.radius * np.array(direction))).all()


def test_the_box_clips_and_the_ball_does_not():
    z = np.array([1.2, -0.3])
    bounds = [(0.0, 2.0)] * 2
    assert Box(bounds).domain.project(z[None]).tolist() == [[1.0, -0.3]]
    assert Box(bounds, region="ball").domain.project(z[None]).tolist() == [[1.2, -0.3]]
    assert Box(bounds).to_user(z).tolist() == [2.0, 0.7]
    assert Box(bounds, region="ball").to_user(z).tolist() == [2.2, 0.7]


@pytest.mark.parametrize(
    "bounds",
    [
        [(0, 1), (2, 3)],
        ((0, 1), (2, 3)),
        [[0, 1], [2, 3]],
        np.array([[0, 1], [2, 3]]),
        np.array([[0, 1], [2, 3]], dtype=np.float32),
        np.array([[0, 2], [1, 3]]).T,
        scipy.optimize.Bounds([0, 2], [1, 3]),
        SimpleNamespace(lb=(0, 2), ub=[1, 3]),
    ],
)
def test_bounds_come_in_many_forms(bounds):
    space = Box(bounds)
    assert space.low.tolist() == [0.0, 2.0]
    assert space.high.tolist() == [1.0, 3.0]
    assert space.low.dtype == np.float64


def test_one_number_of_scipys_bounds_holds_for_all_parameters():
    for make in (scipy.optimize.Bounds, lambda lb, ub: SimpleNamespace(lb=lb, ub=ub)):
        assert Box(make(-1, [1, 2, 3])).bounds.tolist() == [[-1, 1], [-1, 2], [-1, 3]]
        assert Box(make([-1, -2], 3)).bounds.tolist() == [[-1, 3], [-2, 3]]


def test_scipys_bounds_do_for_a_whole_run():
    bounds = scipy.optimize.Bounds([0, 2], [1, 6])
    result = cylbo.minimize(lambda x: x.sum(), bounds, budget=2, seed=0)
    assert result.x_iters[0].tolist() == [0.5, 4.0]
    assert result.bounds.tolist() == [[0, 1], [2, 6]]


@pytest.mark.parametrize(
    ("lb", "ub", "message"),
    [
        ([0, -math.inf], [1, 1], r"must be finite.*parameter 1 has \(-inf, 1.0\)"),
        ([0, 0], math.inf, r"must be finite.*parameter 0 has \(0.0, inf\)"),
        ([0, 2], [1, 1], r"parameter 1 are reversed: \(2.0, 1.0\); swap them\.$"),
        ([0, 0], [1, 1, 1], r"lb and bounds.ub must have one number per parameter, got shapes \(2,\) and \(3,\)"),
        (0, 1, r"shape \(d, 2\).*got \(2,\)"),
        ([], [], r"shape \(d, 2\).*got \(0, 2\)\.$"),
        ([[0, 0]], [[1, 1]], r"shape \(d, 2\).*got \(1, 2, 2\)"),
        ([1, 1], [0, 2], r"parameter 0 are reversed: \(1.0, 0.0\); swap them\.$"),
    ],
)
def test_bad_bounds_of_scipy_get_a_clear_error(lb, ub, message):
    with pytest.raises(ValueError, match=message):
        Box(SimpleNamespace(lb=lb, ub=ub))
    with pytest.raises(TypeError, match=r"bounds\.ub must be an array of numbers, got 'high'"):
        Box(SimpleNamespace(lb=lb, ub="high"))


@pytest.mark.parametrize("bounds", [np.array([[0.0] * 5, [1.0] * 5]), ([0, 0, 0], [1, 1, 1]), [[0], [1]]])
def test_rows_of_lows_and_highs_are_told_to_be_transposed(bounds):
    said = "bounds must have shape (d, 2), one (low, high) per parameter, got {}; transpose them: np.transpose(bounds)."
    with pytest.raises(ValueError, match="bounds must") as caught:
        Box(bounds)
    assert str(caught.value) == said.format(np.shape(bounds))


@pytest.mark.parametrize("bounds", [([-5, -5], [5, 5]), [(1, 0), (3, 2)], np.array([[2.0, 2.0], [4.0, 3.0]])])
def test_two_rows_that_are_lows_and_highs_by_the_look_of_them_are_told_to_be_transposed(bounds):
    said = r"low < high; those of parameter 0 are .*\. They look like \(\[lows\], \[highs\]\): if so, transpose them"
    with pytest.raises(ValueError, match=said):
        Box(bounds)
    low, high = np.array(bounds, float)
    assert Box(np.transpose(bounds)).bounds.tolist() == np.stack([low, high], -1).tolist()


@pytest.mark.parametrize("bounds", [[(1, 0), (0, 3)], [(5, 5), (1, 9)], [(1, 0), (2, 3), (3, 4)], [(1, 0)]])
def test_rows_that_are_wrong_either_way_are_not(bounds):
    with pytest.raises(ValueError, match="low < high") as caught:
        Box(bounds)
    assert "transpose" not in str(caught.value)


def test_bounds_and_centre_are_copied():
    bounds, center = np.array([[0.0, 1.0], [0.0, 1.0]]), np.array([0.25, 0.5])
    space = Box(bounds, center)
    bounds[:], center[:] = 7.0, 7.0
    assert space.high.tolist() == [1.0, 1.0]
    assert space.center.tolist() == [0.25, 0.5]
    with pytest.raises(ValueError, match="read-only"):
        space.center[0] = 0.0


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ([(0, 1), (2, 1)], r"parameter 1 are reversed: \(2.0, 1.0\)"),
        ([(0, 1), (3, 3)], r"parameter 1 are equal: \(3.0, 3.0\)"),
        ([(0, 1), (math.nan, 1)], r"finite.*parameter 1 has \(nan, 1.0\)"),
        ([(0, math.nan)], r"finite.*parameter 0 has \(0.0, nan\)"),
        ([(0, math.inf)], r"finite.*parameter 0 has \(0.0, inf\)"),
        ([(-math.inf, 0)], r"finite.*parameter 0 has \(-inf, 0.0\)"),
        ([(-1.7e308, 1.7e308)], r"finite, and so their difference; parameter 0"),
        ([(1.0, 1.0 + 4 * EPS)], r"parameter 0 are too close"),
        ([(1.0, 1.0 + 0.9e-9)], r"parameter 0 are too close"),
        ([(0.0, 5e-324)], r"parameter 0 are too close"),
        ([(0, 1), (-1e-320, 1e-320)], r"parameter 1 are too close"),
        ([(0, 1), (-1e6, -1e6 + 0.9e-3)], r"parameter 1 are too close"),
        ([], r"shape \(d, 2\).*got \(0,\)"),
        ((0, 1), r"shape \(d, 2\).*got \(2,\)"),
        ([(0, 1, 2)], r"shape \(d, 2\).*got \(1, 3\)"),
        (np.zeros((2, 2, 2)), r"shape \(d, 2\).*got \(2, 2, 2\)"),
        (np.zeros((0, 2)), r"shape \(d, 2\).*got \(0, 2\)"),
        (3.0, r"shape \(d, 2\).*got \(\)"),
    ],
)
def test_bad_bounds_get_a_clear_error(bounds, message):
    for make in (Box, cylbo.Optimizer, lambda b: cylbo.minimize(abs, b, budget=1)):
        with pytest.raises(ValueError, match=message):
            make(bounds)


@pytest.mark.parametrize(
    "bounds",
    [
        "box",
        [("a", "b")],
        [("0", "1")],
        None,
        {"x": (0, 1)},
        [(0, 1), (0,)],
        [(0, 1j)],
        np.array([[0, 1 + 1j]]),
        pytest.param([(0, 10**400)], id="huge integer"),
    ],
)
def test_bounds_that_are_no_numbers_get_a_clear_error(bounds):
    with pytest.raises((TypeError, ValueError), match="bounds must"):
        Box(bounds)


@pytest.mark.parametrize(
    ("center", "message"),
    [
        (
            [0.5, 1.5],
            r"center must lie inside the bounds, parameter 1 is 1.5 and its bounds are \(0.0, 1.0\)",
        ),
        ([-1e-12, 0.5], r"center must lie inside the bounds, parameter 0"),
        ([0.5], r"center must have shape \(2,\), got \(1,\)"),
        (0.5, r"center must have shape \(2,\), got \(\)"),
        ([[0.5, 0.5]], r"center must have shape \(2,\), got \(1, 2\)"),
        ([0.5, math.nan], r"center must be finite"),
        ([0.5, math.inf], r"center must be finite"),
    ],
)
@pytest.mark.parametrize("region", ["box", "ball"])
def test_a_bad_centre_gets_a_clear_error(center, message, region):
    with pytest.raises(ValueError, match=message):
        Box([(0, 1)] * 2, center, region)


@pytest.mark.parametrize(
    "center",
    [
        "middle",
        ["a", "b"],
        ["0.1", "0.2"],
        {},
        np.array([0.1, 0.2j]),
        pytest.param([10**400, 0], id="huge integer"),
    ],
)
def test_a_centre_that_is_no_numbers_gets_a_clear_error(center):
    with pytest.raises((TypeError, ValueError), match="center must be"):
        Box([(0, 1)] * 2, center)


@pytest.mark.parametrize("region", ["sphere", "", "Box", None, 3])
def test_an_unknown_region_is_named_with_the_known_ones(region):
    for make in (
        lambda: Box([(0, 1)], region=region),
        lambda: cylbo.Optimizer([(0, 1)], region=region),
        lambda: cylbo.minimize(abs, [(0, 1)], budget=1, region=region),
    ):
        with pytest.raises(ValueError, match=f"region must be 'box' or 'ball', got {region!r}"):
            make()


def test_evaluated_points_must_lie_in_the_region():
    bounds = [(0, 2)] * 2
    outside_box, outside_ball = [[1.0, 1.0], [2.1, 1.0]], [[1.0, 1.0], [3.0, 1.0]]
    with pytest.raises(ValueError, match="x0 must lie inside the bounds; row 1 does not"):
        Box(bounds).checked_evaluated(outside_box, "x0")
    assert Box(bounds, region="ball").checked_evaluated(outside_box, "x0").tolist() == outside_box
    with pytest.raises(ValueError, match=r"x0 must lie inside the ball of radius 1.41421; row 1 does not"):
        Box(bounds, region="ball").checked_evaluated(outside_ball, "x0")


@pytest.mark.parametrize("bounds", [(1.0, 1.0 + 1.1e-9), (-1e6, -1e6 + 1.1e-3), (0.0, 1e-300), (-1e-12, 1e-12)])
def test_bounds_may_be_narrow_as_long_as_points_between_them_can_be_told_apart(bounds):
    space = Box([bounds])
    np.testing.assert_allclose(space.to_ball(np.array([[bounds[0]], [bounds[1]]])), [[-1.0], [1.0]], atol=1e-6)


@pytest.mark.parametrize("excess", [1e-15, 1e-12, 1e-9])
def test_evaluated_points_may_lie_on_the_bounds_and_not_a_hair_beyond(excess):
    space = Box([(0.0, 1.0)] * 2)
    faces = [[0.0, 1.0], [1.0, 0.5]]
    assert space.checked_evaluated(faces, "x0").tolist() == faces
    for beyond in ([0.5, 1.0 + excess], [-excess, 0.5]):
        with pytest.raises(ValueError, match="x0 must lie inside the bounds; row 1 does not"):
            space.checked_evaluated([[0.5, 0.5], beyond], "x0")


def test_corners_of_the_box_lie_in_the_ball_whatever_the_rounding():
    rng = np.random.default_rng(0)
    for d in (1, 2, 5, 20):
        bounds = np.sort(rng.standard_normal((d, 2)), axis=1)
        space = Box(bounds, rng.uniform(bounds[:, 0], bounds[:, 1]), "ball")
        corners = np.where(rng.random((200, d)) < 0.5, bounds[:, 0], bounds[:, 1])
        assert np.array_equal(space.checked_evaluated(corners, "x0"), corners)


def test_coordinates_are_float64_arrays():
    space = Box([(0, 1)] * 3)
    for x in (space.to_ball(np.full(3, 0.25)), space.to_user(np.full(3, 0.25)), space.domain.low, space.domain.high):
        assert isinstance(x, np.ndarray)
        assert x.dtype == np.float64
        assert x.shape == (3,)
