import dataclasses
import math

import numpy as np
import pytest
import scipy.optimize
import scipy.stats
import torch
from scipy.stats import qmc

from cylbo.search.climb import (
    FEW_COORDINATES,
    FEW_SHARES,
    best_starts,
    climb_keeping_best,
    climb_quasi_newton,
    climb_until_no_decrease,
    projected_spray,
    reflected_spray,
    sobol_shifted,
    sobol_window,
    sparse_spray,
    uniform,
)
from cylbo.space.domain import Domain, Lattice


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
def test_keeping_climb_never_ends_below_its_start_nor_outside_of_the_domain(d, within_box):
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
def test_keeping_climb_finds_the_top_inside_and_on_the_edge(start):
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


def test_keeping_climb_spends_its_steps_on_the_better_half_and_brings_the_best_to_the_top():
    looked_at = []

    def slope(x):
        looked_at.append(len(x))
        return -((x - 0.3) ** 2).sum(-1), -2.0 * (x - 0.3)

    starts = np.random.default_rng(0).uniform(-1, 1, (20, 3))
    ends, values = climb_keeping_best(slope, starts, cube(3), learning_rate=0.05, max_steps=200)
    assert looked_at == [20] * 51 + [10] * 50 + [5] * 50 + [3] * 50
    np.testing.assert_allclose(ends[values.argmax()], 0.3, atol=2e-3)
    assert (values >= -((starts - 0.3) ** 2).sum(-1)).all()


def test_keeping_climb_survives_gradients_that_are_not_numbers():
    def broken(x):
        return -torch.sqrt(0.55 - x[:, 0])  # beyond 0.55 neither value nor gradient

    starts = np.array([[0.5]])
    ends, values = climb_keeping_best(slope_of(broken), starts, cube(1), learning_rate=0.02, max_steps=50)
    assert 0.53 < ends.item() <= 0.55
    assert values.item() == pytest.approx(-math.sqrt(0.55 - ends.item()))


def test_keeping_climb_is_carried_over_a_hole_by_its_momentum():
    def with_hole(x):
        return x[:, 0] + 0.0 * torch.sqrt((x[:, 0] - 0.55) * (x[:, 0] - 0.57))

    starts = np.array([[0.5]])
    ends, _ = climb_keeping_best(slope_of(with_hole), starts, cube(1), learning_rate=0.02, max_steps=50)
    assert ends.item() > 0.6


def starts_of(candidates, first_look, objective, n_starts, share, rng):
    """The starts from candidates that are no groups."""
    return best_starts([candidates], first_look, objective, n_starts, per_group=None, share=share, rng=rng)


def on_grid(f):
    """A function of points that only looks at their first coordinate, so that values can be prescribed."""
    return lambda x: f(x[:, 0])


@pytest.mark.parametrize("k", [1, 7, 50])
def test_best_starts_are_the_top_candidates(k):
    rng = np.random.default_rng(k)
    candidates = rng.standard_normal((200, 3))
    found = starts_of(candidates, values_of(bumps), values_of(bumps), k, 1.0, rng)
    order = sorted(range(200), key=lambda i: -values_of(bumps)(candidates[i][None]).item())
    assert np.array_equal(found, candidates[order[:k]])


def test_best_starts_with_a_first_look_are_the_best_of_the_best_share():
    rng = np.random.default_rng(1)
    candidates = rng.standard_normal((101, 2))

    def first_look(x):
        return -x[:, 1]

    found = starts_of(candidates, first_look, values_of(bumps), 4, 0.1, rng)
    kept = sorted(candidates.tolist(), key=lambda p: p[1])[:11]  # ceil(10.1)
    expected = sorted(kept, key=lambda p: -values_of(bumps)(np.array([p])).item())[:4]
    assert found.tolist() == expected
    few = starts_of(candidates, first_look, values_of(bumps), 20, 0.001, rng)  # never fewer than asked for
    assert sorted(few.tolist()) == sorted(sorted(candidates.tolist(), key=lambda p: p[1])[:20])


def test_best_starts_leave_out_what_is_not_a_number():
    candidates = np.arange(10.0)[:, None]
    holes = on_grid(lambda t: np.where(t > 7.5, math.nan, t))
    rng = np.random.default_rng(0)
    assert starts_of(candidates, holes, holes, 3, 1.0, rng)[:, 0].tolist() == [7.0, 6.0, 5.0]
    assert starts_of(candidates, holes, holes, 3, 0.35, rng)[:, 0].tolist() == [7.0, 6.0, 5.0]
    nothing = on_grid(lambda t: t * math.nan)
    assert starts_of(candidates, nothing, nothing, 3, 1.0, rng).shape == (0, 1)
    assert len(starts_of(candidates, holes, holes, 50, 1.0, rng)) == 8


def test_ties_are_broken_at_random_and_evenly():
    """All the same value (expected improvement is often zero everywhere): no candidate may be preferred."""
    candidates = np.arange(20.0)[:, None]
    flat = on_grid(np.zeros_like)
    rng = np.random.default_rng(2)
    counts = np.zeros(20)
    for _ in range(600):
        counts[starts_of(candidates, flat, flat, 5, 1.0, rng)[:, 0].astype(int)] += 1
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


@pytest.mark.parametrize("spray", [reflected_spray, projected_spray, sparse_spray])
@pytest.mark.parametrize("d", [1, 2, 20, 500])
@pytest.mark.parametrize("sd", [0.002, 0.2])
def test_spray_stays_in_the_box_even_from_a_corner(spray, d, sd):
    domain = cube(d)
    for incumbent in (np.ones(d), -np.ones(d), np.zeros(d)):
        x = spray(incumbent[None], domain, sd, 100, np.random.default_rng(8))
        assert x.shape == (100, d)
        assert domain.contains(x).all()
        assert np.abs(x - incumbent).max() < 6 * sd


@pytest.mark.parametrize("spray", [reflected_spray, projected_spray])
def test_spray_inside_the_box_is_normal_about_the_incumbent(spray):
    incumbent = np.array([0.3, -0.2])
    x = spray(incumbent[None], cube(2), 0.01, 2000, np.random.default_rng(9))
    z = (x - incumbent) / 0.01
    for j in range(2):
        assert scipy.stats.kstest(z[:, j], scipy.stats.norm.cdf).pvalue > 1e-3


def test_reflected_spray_mirrors_at_the_faces():
    incumbent = np.array([0.999, -0.999])
    x = reflected_spray(incumbent[None], cube(2), 0.002, 200, np.random.default_rng(10))
    steps = incumbent + 0.002 * np.random.default_rng(10).standard_normal((200, 2))
    expected = [[2 - v if v > 1 else -2 - v if v < -1 else v for v in row] for row in steps]
    np.testing.assert_allclose(x, expected, rtol=1e-14)


def test_reflected_spray_throws_an_incumbent_outside_of_the_box_far_away_as_the_authors_code_does():
    incumbent = np.array([1.5, 0.0])
    x = reflected_spray(incumbent[None], cube(2, within_box=False), 0.002, 10, np.random.default_rng(11))
    np.testing.assert_allclose(x[:, 0], 0.5, atol=0.01)


def test_projected_spray_follows_the_domain():
    incumbent = np.array([1.4, 0.0])
    ball = cube(2, within_box=False)
    x = projected_spray(incumbent[None], ball, 0.1, 500, np.random.default_rng(12))
    assert (np.linalg.norm(x, axis=1) <= ball.radius * (1 + 1e-14)).all()
    assert (x[:, 0] > 1.0).all()  # stays about the incumbent, outside of the box but in the ball


@pytest.mark.parametrize("spray", [reflected_spray, projected_spray])
def test_spray_about_one_point_knows_only_the_best(spray):
    leaders = np.array([[0.3, -0.2], [-0.9, 0.9], [0.0, 0.8]])
    alone, among = (spray(x, cube(2), 0.01, 50, np.random.default_rng(20)) for x in (leaders[:1], leaders))
    assert np.array_equal(alone, among)


def steps_of(x, leaders):
    """The leader that each row began at, and its step: the nearest, where steps are far smaller than distances."""
    which = np.linalg.norm(x[:, None] - leaders, axis=-1).argmin(-1)
    return which, x - leaders[which]


@pytest.mark.parametrize("within_box", [True, False])
@pytest.mark.parametrize("d", [1, 2, 20, 100, 500])
@pytest.mark.parametrize("n", [1, 300])
def test_sparse_spray_moves_every_row_and_stays_in_the_domain(d, n, within_box):
    domain = cube(d, within_box=within_box)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        leaders = rng.uniform(-0.5, 0.5, (4, d))
        before = leaders.copy()
        x = sparse_spray(leaders, domain, 0.01, n, np.random.default_rng(seed))
        assert x.shape == (n, d)
        assert (steps_of(x, leaders)[1] != 0).any(-1).all()
        assert domain.contains(x).all()
        assert domain.contains(sparse_spray(leaders, domain, 5.0, n, rng)).all()
        assert np.array_equal(leaders, before)
        assert np.array_equal(x, sparse_spray(leaders, domain, 0.01, n, np.random.default_rng(seed)))


@pytest.mark.parametrize("d", [2, 10, 100, 500])
def test_half_of_a_sparse_spray_moves_a_few_coordinates_and_half_all(d):
    """The few are a share that is drawn once for a spray: of three, none above 20 coordinates."""
    n, seen = (4000 if d <= 100 else 1000), set()
    shares = sorted({min(FEW_COORDINATES / d, share) for share in FEW_SHARES})
    for seed in range(12):
        x = sparse_spray(np.zeros((1, d)), cube(d), 0.01, n, np.random.default_rng(seed))
        moved = (x != 0).sum(-1)
        # The expected number of moved coordinates, one of which is always moved
        expected = [0.5 * d + 0.5 * (1.0 + (d - 1) * share) for share in shares]
        nearest = int(np.abs(np.array(expected) - moved.mean()).argmin())
        seen.add(nearest)
        assert moved.mean() == pytest.approx(expected[nearest], abs=5.0 * moved.std() / math.sqrt(n) + 1e-9)
        all_by_chance = 0.5 * shares[nearest] ** (d - 1)
        assert (moved == d).mean() == pytest.approx(0.5 + all_by_chance, abs=5 * 0.5 / math.sqrt(n))
        if d >= 100:
            few = moved[moved < d]
            assert few.mean() == pytest.approx(1.0 + (d - 1) * shares[nearest], rel=0.03)
            assert few.mean() < 1.1 * FEW_COORDINATES
    assert seen == set(range(len(shares)))


def test_promised_shares_are_about_twenty_coordinates_or_a_tenth_to_all():
    assert FEW_COORDINATES == 20
    assert (min(FEW_SHARES), max(FEW_SHARES)) == (0.1, 1.0)


@pytest.mark.parametrize("d", [1, 3, 50])
def test_sparse_spray_begins_half_at_the_best_and_half_at_any_leader(d):
    k, n = 4, 4000
    leaders = np.linspace(-0.9, 0.9, k)[:, None] * np.ones(d)
    which, steps = steps_of(sparse_spray(leaders, cube(d), 0.01, n, np.random.default_rng(21)), leaders)
    counts = np.bincount(which, minlength=k)
    assert scipy.stats.chisquare(counts, n * np.array([0.5 + 0.5 / k] + [0.5 / k] * (k - 1))).pvalue > 1e-3
    z = steps[steps != 0] / 0.01
    assert scipy.stats.kstest(z[:5000], scipy.stats.norm.cdf).pvalue > 1e-3


def test_sparse_spray_in_one_dimension_is_the_projected_normal_step():
    x = sparse_spray(np.array([[0.999]]), cube(1), 0.01, 2000, np.random.default_rng(22))
    assert (x <= 1.0).all()
    on_the_face = (x == 1.0).mean()
    assert on_the_face == pytest.approx(scipy.stats.norm.sf(0.1), abs=5 * 0.5 / math.sqrt(2000))


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
        found = starts_of(np.empty((0, 3)), values_of(bumps), values_of(bumps), 4, share, rng)
        assert found.shape == (0, 3)


def test_candidates_are_not_modified():
    candidates = np.random.default_rng(16).standard_normal((50, 3))
    before = candidates.copy()
    starts_of(candidates, values_of(bumps), values_of(bumps), 4, 0.5, np.random.default_rng(17))
    assert np.array_equal(candidates, before)


def test_first_look_is_skipped_when_everything_is_to_be_looked_at():
    def never(x):
        raise AssertionError("the first look is not needed")

    candidates = np.random.default_rng(18).standard_normal((50, 3))
    assert len(starts_of(candidates, never, values_of(bumps), 4, 1.0, np.random.default_rng(19))) == 4


# ---- starts from groups


def numbered(*groups):
    """Candidates whose first coordinate is their value and whose second is their group."""
    return [np.array([[float(value), float(i)] for value in group]).reshape(-1, 2) for i, group in enumerate(groups)]


value_of = on_grid(lambda t: t)


def from_groups(groups, n_starts, per_group, *, share=1.0, first_look=value_of, objective=value_of, seed=0):
    rng = np.random.default_rng(seed)
    return best_starts(groups, first_look, objective, n_starts, per_group=per_group, share=share, rng=rng)


@pytest.mark.parametrize(
    ("n_starts", "per_group", "expected"),
    [
        (3, 1, [[9, 0], [6, 1], [1, 2]]),
        (3, 2, [[9, 0], [8, 0], [6, 1]]),
        (4, 2, [[9, 0], [8, 0], [6, 1], [5, 1]]),
        (9, 2, [[9, 0], [8, 0], [6, 1], [5, 1], [1, 2]]),
        (4, 50, [[9, 0], [8, 0], [7, 0], [6, 1]]),
        (4, None, [[9, 0], [8, 0], [7, 0], [6, 1]]),
    ],
)
@pytest.mark.parametrize("share", [1.0, 0.7, 1e-9])
def test_starts_are_the_best_of_all_with_so_many_from_each_group(n_starts, per_group, expected, share):
    groups = numbered([7, 9, 8, 2], [5, 6, 4, 3], [1])
    assert from_groups(groups, n_starts, per_group, share=share).tolist() == expected


@pytest.mark.parametrize("share", [1.0, 0.1])
@pytest.mark.parametrize("seed", range(5))
def test_starts_from_groups_are_those_of_a_naive_search(seed, share):
    rng = np.random.default_rng(seed)
    groups = [rng.standard_normal((m, 3)) for m in (80, 1, 0, 30, 200)]
    objective, first_look = values_of(bumps), on_grid(lambda t: -t)
    found = from_groups(groups, 6, 2, share=share, objective=objective, first_look=first_look, seed=seed)
    kept = []
    for group in groups:
        looked = sorted(group.tolist(), key=lambda p: p[0])[: max(2, math.ceil(share * len(group)))]
        looked = group.tolist() if share == 1.0 else looked
        kept += sorted(looked, key=lambda p: -objective(np.array([p])).item())[:2]
    assert found.tolist() == sorted(kept, key=lambda p: -objective(np.array([p])).item())[:6]


@pytest.mark.parametrize("share", [1.0, 0.1])
def test_starts_regardless_of_groups_are_those_of_one_big_group(share):
    rng = np.random.default_rng(23)
    groups = [rng.standard_normal((m, 3)) for m in (80, 1, 0, 30)]
    options = {"share": share, "objective": values_of(bumps), "first_look": on_grid(lambda t: -t)}
    assert np.array_equal(
        from_groups(groups, 7, None, **options), from_groups([np.concatenate(groups)], 7, None, **options)
    )


def test_starts_from_groups_leave_out_what_is_not_a_number():
    groups = numbered([9, 8, 1], [9, 9], [2, 8])
    holes = on_grid(lambda t: np.where(t > 7.5, math.nan, t))
    for share in (1.0, 0.4):
        assert from_groups(groups, 5, 2, share=share, objective=holes, first_look=holes).tolist() == [[2, 2], [1, 0]]
    nothing = on_grid(lambda t: t * math.nan)
    assert from_groups(groups, 5, 2, objective=nothing).shape == (0, 2)


def test_starts_may_be_infinitely_bad_or_good():
    """An improvement that underflows has the logarithm minus infinity, and is still a number to be ordered."""
    groups = numbered([-math.inf, 3], [math.inf], [-math.inf])
    assert from_groups(groups, 3, 1).tolist() == [[math.inf, 1], [3, 0], [-math.inf, 2]]


@pytest.mark.parametrize("per_group", [1, None])
@pytest.mark.parametrize("share", [1.0, 0.1])
def test_empty_groups_are_passed_over(per_group, share):
    def never_of_nothing(x):
        assert len(x)
        return value_of(x)

    options = {"share": share, "objective": never_of_nothing, "first_look": never_of_nothing}
    assert from_groups(numbered([], [3], [], [4]), 5, per_group, **options).tolist() == [[4, 3], [3, 1]]
    assert from_groups(numbered([], []), 5, per_group, **options).shape == (0, 2)


def test_groups_are_not_modified():
    groups = [np.random.default_rng(seed).standard_normal((20, 3)) for seed in range(3)]
    before = [group.copy() for group in groups]
    from_groups(groups, 5, 2, share=0.5)
    assert all(np.array_equal(a, b) for a, b in zip(groups, before, strict=True))


def test_ties_within_groups_are_broken_at_random_and_evenly():
    groups = [np.arange(10.0)[:, None], np.arange(10.0, 20.0)[:, None]]
    flat = on_grid(np.zeros_like)
    counts = np.zeros(20)
    for seed in range(600):
        found = from_groups(groups, 4, 2, objective=flat, seed=seed)[:, 0].astype(int)
        assert sorted(found // 10) == [0, 0, 1, 1]
        counts[found] += 1
    assert scipy.stats.chisquare(counts).pvalue > 1e-3


def test_ties_between_groups_are_broken_at_random_and_evenly():
    """Where the improvement is the same everywhere, the first groups may not be preferred to the last."""
    groups = numbered([1] * 5, [1] * 5, [1] * 5, [1] * 5)
    counts = np.zeros(4)
    for seed in range(400):
        counts[from_groups(groups, 2, 1, seed=seed)[:, 1].astype(int)] += 1
    assert scipy.stats.chisquare(counts).pvalue > 1e-3


def test_one_group_gives_no_more_starts_than_asked_for():
    assert from_groups(numbered([5, 4, 3, 2]), 2, 3).tolist() == [[5, 0], [4, 0]]


# ---- the quasi-Newton climb


def concave(top, rng, decades):
    """A concave quadratic, curved along oblique axes by so many decades; its slope, and its matrix."""
    d = len(top)
    q, _ = np.linalg.qr(rng.standard_normal((d, d)))
    A = (q * np.logspace(-0.5 * decades, 0.5 * decades, d)) @ q.T

    def slope(x):
        away = (x - top) @ A
        return 3.0 - 0.5 * ((x - top) * away).sum(-1), -away

    return slope, A


QUASI = {"learning_rate": 0.05, "max_steps": 500}


# Where the curvature differs a hundredfold, a value within 1e-6 leaves the point more room
CURVED = pytest.mark.parametrize(("decades", "close"), [(0.0, 1e-6), (2.0, 3e-3)])


@CURVED
@pytest.mark.parametrize("d", [1, 2, 5, 20])
def test_quasi_newton_climb_finds_the_top_inside(d, decades, close):
    rng = np.random.default_rng(d)
    top = rng.uniform(-0.8, 0.8, d)
    slope, _ = concave(top, rng, decades)
    starts = rng.uniform(-1, 1, (4, d))
    before = starts.copy()
    ends, values = climb_quasi_newton(slope, starts, cube(d), **QUASI)
    assert ends.shape == (4, d)
    np.testing.assert_allclose(values, 3.0, atol=1e-6)
    np.testing.assert_allclose(values, slope(ends)[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(ends, np.tile(top, (4, 1)), atol=close)
    assert np.array_equal(starts, before)


@CURVED
@pytest.mark.parametrize("d", [1, 2, 5, 20])
def test_quasi_newton_climb_finds_the_top_on_the_faces(d, decades, close):
    """Which is known from SciPy's bounded least squares."""
    rng = np.random.default_rng(30 + d)
    top = 2.5 * np.where(rng.random(d) < 0.5, -1.0, 1.0)
    top[d // 2 + 1 :] *= 0.1
    slope, A = concave(top, rng, decades)
    root = np.linalg.cholesky(A).T
    exact = scipy.optimize.lsq_linear(root, root @ top, bounds=(-1.0, 1.0), method="bvls", tol=1e-14).x
    assert (np.abs(exact) == 1.0).any()
    starts = rng.uniform(-1, 1, (4, d))
    ends, values = climb_quasi_newton(slope, starts, cube(d), **QUASI)
    assert cube(d).contains(ends).all()
    np.testing.assert_allclose(values, slope(exact[None])[0].item(), atol=1e-6)
    np.testing.assert_allclose(ends, np.tile(exact, (4, 1)), atol=close)


@pytest.mark.parametrize("within_box", [True, False])
@pytest.mark.parametrize("d", [1, 2, 20])
@pytest.mark.parametrize("max_steps", [1, 3, 60])
def test_quasi_newton_climb_never_ends_below_its_start_nor_outside_of_the_domain(d, within_box, max_steps):
    domain = cube(d, within_box=within_box)
    starts = domain.project(1.5 * np.random.default_rng(d).standard_normal((20, d)))
    ends, values = climb_quasi_newton(slope_of(bumps), starts, domain, learning_rate=0.05, max_steps=max_steps)
    assert (values >= values_of(bumps)(starts)).all()
    np.testing.assert_allclose(values, values_of(bumps)(ends), rtol=1e-7)
    assert domain.contains(ends).all()
    assert within_box or d == 1 or (np.abs(ends) > 1.0).any()  # the ball is wider than the box, and is made use of


def test_quasi_newton_climb_in_the_ball_reaches_the_rim():
    def slope(x):
        return x.sum(-1), np.ones_like(x)

    ball = cube(2, within_box=False)
    starts = np.array([[0.1, -0.2], [1.3, 0.2]])
    ends, _ = climb_quasi_newton(slope, starts, ball, learning_rate=0.05, max_steps=600)
    assert ball.contains(ends).all()
    np.testing.assert_allclose(ends[ends.sum(-1).argmax()], [1.0, 1.0], atol=6e-2)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("where", ["value", "gradient", "both"])
def test_quasi_newton_climb_survives_a_region_without_numbers(bad, where):
    """Beyond 0.55 there is nothing; the climb stays below and does not lose what it had."""

    def slope(x):
        beyond = x[:, 0] > 0.55
        value, gradient = x.sum(-1), np.ones_like(x)
        if where != "gradient":
            value = np.where(beyond, bad, value)
        if where != "value":
            gradient = np.where(beyond[:, None], bad, gradient)
        return value, gradient

    starts = np.array([[0.5, 0.0], [-0.5, -0.5], [0.549, 0.9]])
    ends, values = climb_quasi_newton(slope, starts, cube(2), **QUASI)
    assert (ends[:, 0] <= 0.55).all()
    assert (values >= starts.sum(-1)).all()
    np.testing.assert_allclose(values, ends.sum(-1), rtol=1e-12)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("where", ["value", "gradient"])
def test_quasi_newton_climb_from_a_start_without_numbers_does_not_disturb_the_others(bad, where):
    def slope(x):
        value, gradient = -((x - 0.3) ** 2).sum(-1), -2.0 * (x - 0.3)
        if where == "value":
            return np.where(x[:, 0] < -0.9, bad, value), gradient
        return value, np.where(x[:, :1] < -0.9, bad, gradient)

    starts = np.array([[-0.95, 0.0], [0.0, 0.0]])
    ends, values = climb_quasi_newton(slope, starts, cube(2), **QUASI)
    assert np.array_equal(ends[0], starts[0])
    assert np.isnan(values[0])
    np.testing.assert_allclose(ends[1], 0.3, atol=1e-6)
    assert values[1] == pytest.approx(0.0, abs=1e-6)


def test_quasi_newton_climb_asks_for_one_row_at_a_time_and_modifies_nothing():
    def slope(x):
        assert x.shape == (1, 3)
        value, gradient = slope_of(bumps)(x)
        value.flags.writeable = gradient.flags.writeable = False
        return value, gradient

    starts = cube(3).from_unit_cube(np.random.default_rng(24).random((5, 3)))
    starts.flags.writeable = False
    ends, values = climb_quasi_newton(slope, starts, cube(3), **QUASI)
    assert (ends.shape, values.shape) == ((5, 3), (5,))


def on_lattice(step, jumps):
    """The square [-1, 1]^2 with coordinate 0 on the multiples of `step`."""

    def snapped(x):
        return np.stack([np.round(x[:, 0] / step) * step, x[:, 1]], -1)

    return dataclasses.replace(cube(2), lattice=Lattice(snapped, lambda x, rng: x, np.array([jumps, False])))


@pytest.mark.parametrize("max_steps", [1, 60])
def test_quasi_newton_climb_leaves_coordinates_that_jump_where_they_are(max_steps):
    top = np.array([0.3, -0.4])
    slope, A = concave(top, np.random.default_rng(0), 1.0)
    starts = np.array([[-1.0, 0.9], [0.0, -0.9], [0.5, 0.2], [1.0, 0.0]])
    ends, values = climb_quasi_newton(slope, starts, on_lattice(0.5, True), learning_rate=0.05, max_steps=max_steps)
    assert np.array_equal(ends[:, 0], starts[:, 0])
    assert (values >= slope(starts)[0]).all()
    np.testing.assert_allclose(values, slope(ends)[0], rtol=1e-12)
    if max_steps > 1:  # along the line that is left the top has a closed form
        line = top[1] - A[1, 0] * (starts[:, 0] - top[0]) / A[1, 1]
        np.testing.assert_allclose(ends[:, 1], np.clip(line, -1.0, 1.0), atol=1e-4)


def test_quasi_newton_climb_rounds_coordinates_that_can_be_climbed_and_values_them_where_they_end():
    top = np.array([0.3, -0.4])
    slope, _ = concave(top, np.random.default_rng(0), 0.0)
    starts = np.array([[-0.75, 0.9], [1.0, -0.9]])
    ends, values = climb_quasi_newton(slope, starts, on_lattice(0.25, False), **QUASI)
    np.testing.assert_allclose(ends, [[0.25, -0.4]] * 2, atol=1e-4)  # the multiple of 1/4 nearest to the top
    assert ends[:, 0].tolist() == [0.25, 0.25]
    np.testing.assert_allclose(values, slope(ends)[0], rtol=1e-12)
    assert (values < 3.0 - 1e-4).all()  # which is the value on top


def test_climbs_that_project_end_on_the_lattice():
    slope, _ = concave(np.array([0.3, -0.4]), np.random.default_rng(0), 0.0)
    starts = np.array([[-0.5, 0.9], [1.0, -0.9]])
    ends, values = climb_keeping_best(slope, starts, on_lattice(0.5, True), learning_rate=0.05, max_steps=20)
    assert set(ends[:, 0].tolist()) <= {-1.0, -0.5, 0.0, 0.5, 1.0}
    np.testing.assert_allclose(values, slope(ends)[0], rtol=1e-12)


@pytest.mark.parametrize("spread", [sobol_window, sobol_shifted, uniform])
def test_spreads_and_sprays_lie_on_the_lattice(spread):
    domain, rng = on_lattice(0.5, True), np.random.default_rng(0)
    for x in (
        spread(domain, 300, rng),
        projected_spray(np.zeros((1, 2)), domain, 0.7, 300, rng),
        sparse_spray(np.zeros((1, 2)), domain, 0.7, 300, rng),
    ):
        assert set(x[:, 0].tolist()) == {-1.0, -0.5, 0.0, 0.5, 1.0}
        assert len(set(x[:, 1].tolist())) > 50
