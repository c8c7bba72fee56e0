import math

import numpy as np
import pytest
import scipy.stats
import torch
from scipy.stats import qmc

from cylbo.geometry import Domain
from cylbo.maximize import (
    best_starts,
    climb_keeping_best,
    climb_until_no_decrease,
    projected_spray,
    reflected_spray,
    sobol_shifted,
    sobol_window,
    uniform,
)


def cube(d, *, within_box=True, low=-1.0, high=1.0):
    corner = np.ones(d)
    return Domain(low * corner, high * corner, math.sqrt(d) * max(abs(low), abs(high)), within_box=within_box)


def bumps(x):
    """Smooth, with several maxima, some of them on the edge of the domain, and steep enough to overshoot."""
    return torch.sin(7.0 * x).sum(-1) + x.sum(-1) - 30.0 * ((x - 0.3) ** 2).prod(-1)


def values_of(objective):
    """A function of torch as one of arrays."""
    return lambda x: objective(torch.from_numpy(x)).numpy()


def slope_of(objective):
    """The same with its gradient."""

    def slope(x):
        query = torch.from_numpy(x.copy()).requires_grad_(True)
        value = objective(query)
        (gradient,) = torch.autograd.grad(value.sum(), query)
        return value.detach().numpy(), gradient.numpy()

    return slope


def climb_one(objective, start, domain, *, learning_rate, max_steps):
    """The authors' rule, one start at a time: torch's own Adam, stopped at the first step without a decrease.

    Returns the end point and why the climb ended.
    """
    x = torch.from_numpy(start.copy()).requires_grad_(True)
    adam = torch.optim.Adam([x], lr=learning_rate)
    previous = math.inf
    for _ in range(max_steps):
        adam.zero_grad()
        loss = -objective(x[None])[0]
        loss.backward()
        current = float(loss.detach())
        if math.isfinite(previous) and not (previous - current) / max(1.0, abs(previous), abs(current)) >= 1e-9:
            return x.detach().numpy(), "no decrease"
        if math.isnan(current) or x.grad.isnan().any():
            return x.detach().numpy(), "not a number"
        previous, before = current, x.detach().clone()
        adam.step()
        if not bool(domain.contains(x.detach().numpy()[None])[0]):
            return before.numpy(), "left the domain"
    return x.detach().numpy(), "steps"


@pytest.mark.parametrize("within_box", [True, False])
@pytest.mark.parametrize("d", [1, 2, 5])
@pytest.mark.parametrize(("learning_rate", "scale"), [(0.01, 1.0), (0.1, 1.0), (0.01, 1e3), (0.01, 1e-7)])
def test_paper_climb_is_adam_stopped_start_by_start(d, within_box, learning_rate, scale):
    """Whatever the scale of the objective: the rule is relative above 1 and absolute below."""

    def objective(x):
        return scale * bumps(x)

    domain = cube(d, within_box=within_box)
    rng = np.random.default_rng(d)
    starts = domain.from_unit_cube(rng.random((10, d)))
    before = starts.copy()
    climbing = {"learning_rate": learning_rate, "max_steps": 60}
    ends, values = climb_until_no_decrease(slope_of(objective), starts, domain, **climbing)
    reasons = set()
    for start, end in zip(starts, ends, strict=True):
        expected, reason = climb_one(objective, start, domain, **climbing)
        reasons.add(reason)
        np.testing.assert_allclose(end, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(values, values_of(objective)(ends), rtol=1e-7)
    assert np.array_equal(starts, before)
    assert "no decrease" in reasons


def test_every_reason_to_stop_was_seen_in_the_comparison_above():
    seen = set()
    for d, rate in ((1, 0.1), (2, 0.01), (5, 0.01)):
        domain = cube(d)
        starts = domain.from_unit_cube(np.random.default_rng(d).random((25, d)))
        seen |= {climb_one(bumps, s, domain, learning_rate=rate, max_steps=60)[1] for s in starts}
    assert seen == {"no decrease", "left the domain", "steps"}


def test_step_that_does_not_improve_is_kept():
    """On a parabola whose top lies 0.004 away, Adam's first step of 0.01 overshoots; the authors keep it."""

    def parabola(x):
        return -((x - 0.004) ** 2).sum(-1)

    starts = np.zeros((1, 1))
    ends, _ = climb_until_no_decrease(slope_of(parabola), starts, cube(1), learning_rate=0.01, max_steps=500)
    assert ends.item() == pytest.approx(0.01, rel=1e-5)


def test_step_out_of_the_domain_is_undone_and_there_is_no_projection():
    starts = np.array([[0.985]])
    ends, values = climb_until_no_decrease(
        slope_of(lambda x: x.sum(-1)), starts, cube(1), learning_rate=0.01, max_steps=500
    )
    assert ends.item() == pytest.approx(0.995, rel=1e-6)
    assert np.array_equal(values, ends[:, 0])


def test_start_without_a_gradient_stays_and_does_not_disturb_the_others():
    def broken(x):
        return bumps(x) + torch.sqrt(x[:, 0] + 0.5)

    domain = cube(2)
    starts = np.array([[-0.9, 0.0], [0.1, -0.2], [0.4, 0.4]])
    ends, values = climb_until_no_decrease(slope_of(broken), starts, domain, learning_rate=0.01, max_steps=100)
    assert np.array_equal(ends[0], starts[0])
    assert np.isnan(values[0])
    for i in (1, 2):
        expected, _ = climb_one(broken, starts[i], domain, learning_rate=0.01, max_steps=100)
        np.testing.assert_allclose(ends[i], expected, rtol=1e-10, atol=1e-12)
        assert not np.array_equal(ends[i], starts[i])


@pytest.mark.parametrize("within_box", [True, False])
@pytest.mark.parametrize("d", [1, 2, 20])
def test_default_climb_never_ends_below_its_start_nor_outside_of_the_domain(d, within_box):
    domain = cube(d, within_box=within_box)
    rng = np.random.default_rng(d)
    starts = domain.project(1.5 * rng.standard_normal((40, d)))
    before = starts.copy()
    ends, values = climb_keeping_best(slope_of(bumps), starts, domain, learning_rate=0.05, max_steps=30)
    assert (values >= values_of(bumps)(starts)).all()
    np.testing.assert_allclose(values, values_of(bumps)(ends), rtol=1e-7)
    np.testing.assert_allclose(domain.project(ends), ends, rtol=1e-14, atol=0.0)
    assert np.array_equal(starts, before)


@pytest.mark.parametrize("start", [[0.6, -0.5], [-0.4, 0.9]])
def test_default_climb_finds_the_top_inside_and_on_the_edge(start):
    def hill(top):
        return slope_of(lambda x: -((x - torch.tensor(top, dtype=torch.float64)) ** 2).sum(-1))

    starts = np.array([start])
    climbing = {"learning_rate": 0.05, "max_steps": 200}
    inside, _ = climb_keeping_best(hill([0.3, 0.1]), starts, cube(2), **climbing)
    np.testing.assert_allclose(inside, [[0.3, 0.1]], atol=2e-3)
    in_box, _ = climb_keeping_best(hill([3.0, 0.5]), starts, cube(2), **climbing)
    np.testing.assert_allclose(in_box, [[1.0, 0.5]], atol=2e-3)
    climbing["max_steps"] = 600  # along the rim Adam is slow: its steps point the same way wherever it is
    in_ball, _ = climb_keeping_best(hill([3.0, 3.0]), starts, cube(2, within_box=False), **climbing)
    np.testing.assert_allclose(in_ball, [[1.0, 1.0]], atol=6e-2)


def test_default_climb_spends_its_steps_on_the_better_half_and_brings_the_best_to_the_top():
    looked_at = []

    def slope(x):
        looked_at.append(len(x))
        return -((x - 0.3) ** 2).sum(-1), -2.0 * (x - 0.3)

    starts = np.random.default_rng(0).uniform(-1, 1, (20, 3))
    ends, values = climb_keeping_best(slope, starts, cube(3), learning_rate=0.05, max_steps=200)
    assert looked_at == [20] * 51 + [10] * 50 + [5] * 50 + [3] * 50
    np.testing.assert_allclose(ends[values.argmax()], 0.3, atol=2e-3)
    assert (values >= -((starts - 0.3) ** 2).sum(-1)).all()


def test_default_climb_survives_gradients_that_are_not_numbers():
    def broken(x):
        return -torch.sqrt(0.55 - x[:, 0])  # beyond 0.55 neither value nor gradient

    starts = np.array([[0.5]])
    ends, values = climb_keeping_best(slope_of(broken), starts, cube(1), learning_rate=0.02, max_steps=50)
    assert 0.53 < ends.item() <= 0.55
    assert values.item() == pytest.approx(-math.sqrt(0.55 - ends.item()))


def test_default_climb_is_carried_over_a_hole_by_its_momentum():
    def with_hole(x):
        return x[:, 0] + 0.0 * torch.sqrt((x[:, 0] - 0.55) * (x[:, 0] - 0.57))

    starts = np.array([[0.5]])
    ends, _ = climb_keeping_best(slope_of(with_hole), starts, cube(1), learning_rate=0.02, max_steps=50)
    assert ends.item() > 0.6


def on_grid(f):
    """A function of points that only looks at their first coordinate, so that values can be prescribed."""
    return lambda x: f(x[:, 0])


@pytest.mark.parametrize("k", [1, 7, 50])
def test_best_starts_are_the_top_candidates(k):
    rng = np.random.default_rng(k)
    candidates = rng.standard_normal((200, 3))
    found = best_starts(candidates, values_of(bumps), values_of(bumps), k, 1.0, rng)
    order = sorted(range(200), key=lambda i: -values_of(bumps)(candidates[i][None]).item())
    assert np.array_equal(found, candidates[order[:k]])


def test_best_starts_with_a_first_look_are_the_best_of_the_best_share():
    rng = np.random.default_rng(1)
    candidates = rng.standard_normal((101, 2))

    def first_look(x):
        return -x[:, 1]

    found = best_starts(candidates, first_look, values_of(bumps), 4, 0.1, rng)
    kept = sorted(candidates.tolist(), key=lambda p: p[1])[:11]  # ceil(10.1)
    expected = sorted(kept, key=lambda p: -values_of(bumps)(np.array([p])).item())[:4]
    assert found.tolist() == expected
    few = best_starts(candidates, first_look, values_of(bumps), 20, 0.001, rng)  # never fewer than asked for
    assert sorted(few.tolist()) == sorted(sorted(candidates.tolist(), key=lambda p: p[1])[:20])


def test_best_starts_leave_out_what_is_not_a_number():
    candidates = np.arange(10.0)[:, None]
    holes = on_grid(lambda t: np.where(t > 7.5, math.nan, t))
    rng = np.random.default_rng(0)
    assert best_starts(candidates, holes, holes, 3, 1.0, rng)[:, 0].tolist() == [7.0, 6.0, 5.0]
    assert best_starts(candidates, holes, holes, 3, 0.35, rng)[:, 0].tolist() == [7.0, 6.0, 5.0]
    nothing = on_grid(lambda t: t * math.nan)
    assert best_starts(candidates, nothing, nothing, 3, 1.0, rng).shape == (0, 1)
    assert len(best_starts(candidates, holes, holes, 50, 1.0, rng)) == 8


def test_ties_are_broken_at_random_and_evenly():
    """All the same value (expected improvement is often zero everywhere): no candidate may be preferred."""
    candidates = np.arange(20.0)[:, None]
    flat = on_grid(np.zeros_like)
    rng = np.random.default_rng(2)
    counts = np.zeros(20)
    for _ in range(600):
        counts[best_starts(candidates, flat, flat, 5, 1.0, rng)[:, 0].astype(int)] += 1
    assert scipy.stats.chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize("spread", [sobol_window, sobol_shifted, uniform])
@pytest.mark.parametrize("d", [1, 2, 20, 500])
def test_spread_fills_the_box_and_follows_its_generator(spread, d):
    domain = Domain(np.full(d, -1.0), np.full(d, 0.5), 2.0)
    x = spread(domain, 256, np.random.default_rng(3))
    assert x.shape == (256, d)
    assert x.dtype == np.float64
    assert domain.contains(x).all()
    assert np.abs(x.mean(0) + 0.25).max() < 0.2
    assert np.array_equal(x, spread(domain, 256, np.random.default_rng(3)))
    assert not np.array_equal(x, spread(domain, 256, np.random.default_rng(4)))


def sobol_from(rng, d, n):
    """The plain sequence from a random index on, but never from its first point, which is a corner of the box."""
    skip = 1 + int(rng.integers(n))
    return qmc.Sobol(d, scramble=False).random(4 * n)[skip : skip + n]


@pytest.mark.parametrize("d", [1, 2, 20])
def test_window_is_a_stretch_of_the_plain_sobol_sequence(d):
    for seed in range(5):
        x = sobol_window(cube(d), 64, np.random.default_rng(seed))
        expected = 2.0 * sobol_from(np.random.default_rng(seed), d, 64) - 1.0
        np.testing.assert_allclose(x, expected, atol=1e-8)
        assert (np.abs(x) < 1.0).all()


@pytest.mark.parametrize("d", [1, 2, 20])
def test_shifted_sobol_is_the_plain_sequence_moved_round_the_box(d):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        unit, shift = sobol_from(rng, d, 64), rng.random(d)
        expected = 2.0 * np.where(unit + shift < 1.0, unit + shift, unit + shift - 1.0) - 1.0
        np.testing.assert_allclose(sobol_shifted(cube(d), 64, np.random.default_rng(seed)), expected, atol=1e-8)


def test_shift_of_the_sobol_sequence_makes_every_point_uniform():
    """Over the seeds, each point alone is as likely anywhere in the box."""
    x = np.stack([sobol_shifted(cube(3), 8, np.random.default_rng(seed)) for seed in range(500)])
    for i in (0, 7):
        for j in range(3):
            assert scipy.stats.kstest(x[:, i, j], scipy.stats.uniform(-1.0, 2.0).cdf).pvalue > 1e-3


@pytest.mark.parametrize("spread", [sobol_window, sobol_shifted])
@pytest.mark.parametrize("d", [2, 20])
def test_sobol_points_are_more_even_than_chance(spread, d):
    """In every coordinate hardly any of 64 slots gets more or fewer than its 4 of 256 points, and in the plane of the
    first two the discrepancy is well below that of all of 20 sets of independent points.
    """
    independent = [uniform(cube(d), 256, np.random.default_rng(seed)) for seed in range(20)]

    def unevenness(x):
        slots = np.stack([np.histogram(column, 64, (-1.0, 1.0))[0] for column in x.T])
        return np.abs(slots - 4).mean()

    def discrepancy(x):
        return qmc.discrepancy(0.5 * (x[:, :2] + 1.0), method="L2-star")

    for seed in range(5):
        x = spread(cube(d), 256, np.random.default_rng(seed))
        assert unevenness(x) < 0.5 * min(map(unevenness, independent))
        assert discrepancy(x) < 0.75 * min(map(discrepancy, independent))


@pytest.mark.parametrize("spread", [sobol_window, sobol_shifted])
def test_beyond_sobols_dimensions_the_spread_is_uniform(spread):
    d = qmc.Sobol.MAXDIM + 1
    x = spread(cube(d), 3, np.random.default_rng(7))
    assert x.shape == (3, d)
    assert (np.abs(x) <= 1).all()
    for row in x:
        assert scipy.stats.kstest(row, scipy.stats.uniform(-1.0, 2.0).cdf).pvalue > 1e-3
    assert abs(np.corrcoef(x)[np.triu_indices(3, 1)]).max() < 5.0 / math.sqrt(d)
    if spread is sobol_window:
        assert np.array_equal(x, uniform(cube(d), 3, np.random.default_rng(7)))
    at_the_limit = spread(cube(qmc.Sobol.MAXDIM), 2, np.random.default_rng(7))
    assert at_the_limit.shape == (2, qmc.Sobol.MAXDIM)


@pytest.mark.parametrize("spray", [reflected_spray, projected_spray])
@pytest.mark.parametrize("d", [1, 2, 20, 500])
@pytest.mark.parametrize("sd", [0.002, 0.2])
def test_spray_stays_in_the_box_even_from_a_corner(spray, d, sd):
    domain = cube(d)
    for incumbent in (np.ones(d), -np.ones(d), np.zeros(d)):
        x = spray(incumbent, domain, sd, 100, np.random.default_rng(8))
        assert x.shape == (100, d)
        assert domain.contains(x).all()
        assert np.abs(x - incumbent).max() < 6 * sd


@pytest.mark.parametrize("spray", [reflected_spray, projected_spray])
def test_spray_inside_the_box_is_normal_about_the_incumbent(spray):
    incumbent = np.array([0.3, -0.2])
    x = spray(incumbent, cube(2), 0.01, 2000, np.random.default_rng(9))
    z = (x - incumbent) / 0.01
    for j in range(2):
        assert scipy.stats.kstest(z[:, j], scipy.stats.norm.cdf).pvalue > 1e-3


def test_reflected_spray_mirrors_at_the_faces():
    incumbent = np.array([0.999, -0.999])
    x = reflected_spray(incumbent, cube(2), 0.002, 200, np.random.default_rng(10))
    steps = incumbent + 0.002 * np.random.default_rng(10).standard_normal((200, 2))
    expected = [[2 - v if v > 1 else -2 - v if v < -1 else v for v in row] for row in steps]
    np.testing.assert_allclose(x, expected, rtol=1e-14)


def test_reflected_spray_throws_an_incumbent_outside_of_the_box_far_away_as_the_authors_code_does():
    incumbent = np.array([1.5, 0.0])
    x = reflected_spray(incumbent, cube(2, within_box=False), 0.002, 10, np.random.default_rng(11))
    np.testing.assert_allclose(x[:, 0], 0.5, atol=0.01)


def test_projected_spray_follows_the_domain():
    incumbent = np.array([1.4, 0.0])
    ball = cube(2, within_box=False)
    x = projected_spray(incumbent, ball, 0.1, 500, np.random.default_rng(12))
    assert (np.linalg.norm(x, axis=1) <= ball.radius * (1 + 1e-14)).all()
    assert (x[:, 0] > 1.0).all()  # stays about the incumbent, outside of the box but in the ball


@pytest.mark.parametrize("climb", [climb_until_no_decrease, climb_keeping_best])
def test_slope_is_asked_for_values_and_gradients_of_rows_and_nothing_is_modified(climb):
    """The function sees (k, d) arrays of points; what it returns stays as it is."""
    asked = []

    def slope(x):
        assert x.ndim == 2
        assert x.shape[1] == 2
        value, gradient = slope_of(bumps)(x)
        value.flags.writeable = gradient.flags.writeable = False
        asked.append(len(x))
        return value, gradient

    starts = cube(2).from_unit_cube(np.random.default_rng(13).random((6, 2)))
    starts.flags.writeable = False
    ends, values = climb(slope, starts, cube(2), learning_rate=0.05, max_steps=40)
    assert ends.shape == (6, 2)
    assert values.shape == (6,)
    assert max(asked) == 6
    assert sum(asked) <= 6 * 41


def test_paper_climb_asks_no_more_for_starts_that_have_ended():
    asked = []

    def slope(x):
        asked.append(len(x))
        return slope_of(bumps)(x)

    starts = cube(2).from_unit_cube(np.random.default_rng(14).random((10, 2)))
    climb_until_no_decrease(slope, starts, cube(2), learning_rate=0.1, max_steps=60)
    climbing, last = asked[:-1], asked[-1]
    assert climbing == sorted(climbing, reverse=True)
    assert climbing[-1] < climbing[0] == last == 10  # the ends are evaluated once more, all of them


def test_no_candidates_give_no_starts():
    rng = np.random.default_rng(15)
    for share in (1.0, 0.1):
        found = best_starts(np.empty((0, 3)), values_of(bumps), values_of(bumps), 4, share, rng)
        assert found.shape == (0, 3)


def test_candidates_are_not_modified():
    candidates = np.random.default_rng(16).standard_normal((50, 3))
    before = candidates.copy()
    best_starts(candidates, values_of(bumps), values_of(bumps), 4, 0.5, np.random.default_rng(17))
    assert np.array_equal(candidates, before)


def test_first_look_is_skipped_when_everything_is_to_be_looked_at():
    def never(x):
        raise AssertionError("the first look is not needed")

    candidates = np.random.default_rng(18).standard_normal((50, 3))
    assert len(best_starts(candidates, never, values_of(bumps), 4, 1.0, np.random.default_rng(19))) == 4
