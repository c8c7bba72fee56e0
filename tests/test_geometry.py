import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cylbo.numerics.polar import from_polar, polar
from cylbo.space.domain import Domain, Lattice, project_to_ball, project_to_box

DIMS = (1, 2, 20, 500)


def points(rng, n, d, scale=1.0):
    return scale * rng.standard_normal((n, d))


def cube(d, *, within_box):
    ones = np.ones(d)
    return Domain(-ones, ones, math.sqrt(d), within_box=within_box)


@pytest.mark.parametrize("d", DIMS)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_polar_is_the_norm_and_the_unit_vector(d, scale):
    x = points(np.random.default_rng(d), 30, d, scale)
    r, a = polar(x)
    norms = np.linalg.norm(x, axis=1)
    np.testing.assert_allclose(r, norms, rtol=1e-14)
    np.testing.assert_allclose(a, x / norms[:, None], rtol=1e-13, atol=1e-16)


@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=6))
def test_polar_neither_overflows_nor_vanishes(coordinates):
    r, a = polar(np.array([coordinates]))
    assert r.item() == pytest.approx(math.hypot(*coordinates), rel=1e-14, abs=0.0)
    expected = 1.0 if any(coordinates) else 0.0
    assert math.hypot(*a[0].tolist()) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("d", DIMS)
def test_from_polar_undoes_polar_also_at_the_centre(d):
    x = points(np.random.default_rng(d), 10, d)
    x[3] = 0.0
    np.testing.assert_allclose(from_polar(*polar(x)), x, rtol=1e-14, atol=1e-16)


def test_the_centre_has_no_direction():
    r, a = polar(np.zeros((1, 3)))
    assert r.tolist() == [0.0]
    assert a.tolist() == [[0.0, 0.0, 0.0]]


@pytest.mark.parametrize("d", [1, 2, 20])
@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_radius_and_direction_change_as_their_closed_forms_say(d, scale):
    """dr/dx = a and da/dx = (I - a a^T) / r, which the pullback relies on; the scale divided out in `polar` must not
    show up in them.
    """
    x = points(np.random.default_rng(3 + d), 1, d, scale)[0]
    r, a = polar(x[None])
    a = a[0]
    step = 1e-3 * scale / math.sqrt(d)
    steps = step * np.eye(d)
    near, far = ([u - v for u, v in zip(polar(x + j * steps), polar(x - j * steps), strict=True)] for j in (1, 2))
    radius, direction = ((8 * u - v) / (12 * step) for u, v in zip(near, far, strict=True))  # (d,), (d, d)
    np.testing.assert_allclose(radius, a, rtol=1e-8, atol=1e-9)
    expected = (np.eye(d) - np.outer(a, a)) / r
    np.testing.assert_allclose(direction.T, expected, rtol=1e-6, atol=1e-8 / scale)


def test_polar_of_no_points_is_empty():
    r, a = polar(np.empty((0, 4)))
    assert r.shape == (0,)
    assert a.shape == (0, 4)


@pytest.mark.parametrize("d", DIMS)
def test_projection_to_the_ball_is_the_nearest_point_and_leaves_insiders_alone(d):
    """Nearest in a convex set is the point from which no other lies at an acute angle to the gap."""
    rng = np.random.default_rng(d)
    radius = 0.7
    x = points(rng, 40, d, 2.0 / math.sqrt(d))
    near = project_to_ball(x, radius)
    inside = np.linalg.norm(x, axis=1) <= radius
    assert np.array_equal(near[inside], x[inside])
    assert (np.linalg.norm(near, axis=1) <= radius * (1 + 1e-14)).all()
    others = points(rng, 200, d)
    others *= (radius * rng.random(200) / np.linalg.norm(others, axis=1))[:, None]
    for p, q in zip(x, near, strict=True):
        assert ((others - q) @ (p - q) <= 1e-12).all()


def test_projection_to_the_ball_keeps_the_centre():
    x = np.zeros((1, 3))
    assert np.array_equal(project_to_ball(x, 0.5), x)


def test_projection_to_a_box_clips_each_coordinate():
    low, high = np.array([-1.0, 0.25]), np.array([0.5, 2.0])
    x = np.array([[-3.0, 0.0], [0.0, 1.0], [9.0, 9.0]])
    assert project_to_box(x, low, high).tolist() == [[-1.0, 0.25], [0.0, 1.0], [0.5, 2.0]]


@pytest.mark.parametrize("within_box", [True, False])
@pytest.mark.parametrize("d", DIMS)
def test_projected_points_may_be_proposed(d, within_box):
    domain = cube(d, within_box=within_box)
    x = points(np.random.default_rng(d), 2000, d, 3.0)
    assert domain.contains(domain.project(x)).all()


@pytest.mark.parametrize("d", DIMS)
def test_the_ball_of_radius_sqrt_d_touches_the_corners_and_leaves_the_box(d):
    corner = np.ones((1, d))
    axis = np.zeros((1, d))
    axis[0, 0] = math.sqrt(d)
    ball, box = cube(d, within_box=False), cube(d, within_box=True)
    assert box.contains(corner).all()
    assert ball.contains(corner * (1 - 1e-15)).all()
    assert not ball.contains(corner * (1 + 1e-9)).any()
    assert ball.contains(axis).all()
    assert bool(box.contains(axis)[0]) == (d == 1)
    assert ball.dim == d


@pytest.mark.parametrize("d", DIMS)
def test_a_projection_that_rounds_outwards_still_lies_in_the_ball(d):
    """The slack is of the size of rounding, not more."""
    ball = cube(d, within_box=False)
    x = points(np.random.default_rng(20 + d), 50, d)
    rim = x / np.linalg.norm(x, axis=1, keepdims=True) * math.sqrt(d)
    assert ball.contains(rim * (1 + 5e-13)).all()
    assert not ball.contains(rim * (1 + 2e-12)).any()


def test_unit_cube_is_spread_over_the_box():
    domain = Domain(np.array([-1.0, 2.0]), np.array([3.0, 2.5]), 4.0)
    u = np.array([[0.0, 0.0], [1.0, 1.0], [0.5, 0.2]])
    expected = np.array([[-1.0, 2.0], [3.0, 2.5], [1.0, 2.1]])
    assert np.allclose(domain.from_unit_cube(u), expected)


def halves(x):
    """Coordinate 0 on the multiples of 1/2, coordinate 1 as it is."""
    return np.stack([np.round(2.0 * x[:, 0]) / 2.0, x[:, 1]], -1)


def test_a_domain_with_a_lattice_proposes_points_of_it_only():
    lattice = Lattice(halves, lambda x, rng: x, np.array([True, False]))
    low, high = np.array([-1.0, -0.5]), np.array([1.0, 0.5])
    domain, plain = Domain(low, high, 2.0, lattice=lattice), Domain(low, high, 2.0)
    x = points(np.random.default_rng(0), 500, 2, 2.0)
    u = np.random.default_rng(1).random((500, 2))
    for ours, continuous in (
        (domain.project(x), plain.project(x)),
        (domain.from_unit_cube(u), plain.from_unit_cube(u)),
    ):
        assert set(ours[:, 0].tolist()) == {-1.0, -0.5, 0.0, 0.5, 1.0}
        assert (np.abs(ours[:, 0] - continuous[:, 0]) <= 0.25).all()
        assert np.array_equal(ours[:, 1], continuous[:, 1])
        assert domain.contains(ours).all()


def test_near_a_point_there_is_what_lies_within_reach_and_in_the_box_and_what_jumps_is_free():
    ball = cube(3, within_box=False)
    assert ball.near(np.array([0.9, 0.0, -1.0]), 0.25) is ball
    near = cube(3, within_box=True).near(np.array([0.9, 0.0, -1.0]), 0.25)
    assert near.low.tolist() == [0.65, -0.25, -1.0]
    assert near.high.tolist() == [1.0, 0.25, -0.75]
    assert near.radius == math.sqrt(3)
    lattice = Lattice(halves, lambda x, rng: x, np.array([True, False]))
    near = Domain(-np.ones(2), np.ones(2), 2.0, lattice=lattice).near(np.array([0.5, 0.5]), 0.25)
    assert near.low.tolist() == [-1.0, 0.25]
    assert near.high.tolist() == [1.0, 0.75]
    assert set(near.project(points(np.random.default_rng(2), 200, 2, 2.0))[:, 0].tolist()) == {
        -1.0,
        -0.5,
        0.0,
        0.5,
        1.0,
    }


def test_a_domain_is_continuous_unless_it_is_told_otherwise():
    assert cube(2, within_box=True).lattice is None
