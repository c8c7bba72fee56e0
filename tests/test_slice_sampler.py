"""The sampler against exact, skewed laws.

Two ways: start from exact draws, update a few times, and the law must not have moved (the draws are
independent, so Kolmogorov and Smirnov tell how far is too far); and run one chain, whose moments, quantiles
must come out within what its effective sample size allows.
"""

import math

import numpy as np
import pytest
import scipy.stats

import cylbo.numerics.slice_sampler
from cylbo.errors import CylboError, SamplingError
from cylbo.numerics.slice_sampler import Chain, sample, slice_update, sweep

INFINITE = (-math.inf, math.inf)


class Mixture:
    """Normals side by side, cut to an interval, as far as scipy's frozen laws are needed here."""

    def __init__(self, weights, means, sds, support):
        self.weights, self.means, self.sds = np.array(weights), np.array(means), np.array(sds)
        self.support = support

    def rvs(self, size, random_state):
        i = random_state.choice(len(self.weights), 3 * size, p=self.weights)
        x = random_state.normal(self.means[i], self.sds[i])
        return x[(x > self.support[0]) & (x < self.support[1])][:size]

    def cdf(self, x):
        low, high = (self._uncut(np.array(end)) for end in self.support)
        return (self._uncut(np.asarray(x)) - low) / (high - low)

    def _uncut(self, x):
        z = (x[..., None] - self.means) / self.sds
        return (self.weights * scipy.stats.norm.cdf(z)).sum(-1)

    def log_density(self, x):
        exponents = -0.5 * ((x - self.means) / self.sds) ** 2
        top = exponents.max()
        return top + math.log(float((self.weights / self.sds * np.exp(exponents - top)).sum()))


BIMODAL = Mixture([0.3, 0.7], [-3.0, 2.0], [0.4, 1.0], INFINITE)
CUT_BIMODAL = Mixture([0.3, 0.7], [-3.0, 2.0], [0.4, 1.0], (-3.0, 4.0))

# name: exact law, unnormalised log density written by hand, support given to the sampler
LAWS = {
    "gamma": (scipy.stats.gamma(2.0), lambda t: math.log(t) - t if t > 0 else -math.inf, (0.0, math.inf)),
    "beta": (
        scipy.stats.beta(2.0, 5.0),
        lambda t: math.log(t) + 4.0 * math.log1p(-t) if 0.0 < t < 1.0 else -math.inf,
        (0.0, 1.0),
    ),
    "arcsine-like beta": (
        scipy.stats.beta(0.5, 1.5),
        lambda t: 0.5 * (math.log1p(-t) - math.log(t)) if 0.0 < t < 1.0 else -math.inf,
        (0.0, 1.0),
    ),
    "truncated normal": (scipy.stats.truncnorm(-0.5, 3.0), lambda t: -0.5 * t * t, (-0.5, 3.0)),
    "uniform": (scipy.stats.uniform(2.0, 3.0), lambda t: 0.0, (2.0, 5.0)),
    "gumbel": (scipy.stats.gumbel_r(), lambda t: -t - math.exp(-t) if t > -700 else -math.inf, INFINITE),
    "bimodal": (BIMODAL, BIMODAL.log_density, INFINITE),
    "cut bimodal": (CUT_BIMODAL, CUT_BIMODAL.log_density, CUT_BIMODAL.support),
}


def moved(law, log_density, support, width, rng, *, n=2000, updates=3):
    """Exact draws after a few updates each."""
    ends = []
    for start in law.rvs(size=n, random_state=rng):
        x, value = float(start), log_density(float(start))
        for _ in range(updates):
            x, value = slice_update(lambda t, _: log_density(t), x, value, rng, support=support, width=width)
        assert value == log_density(x)
        ends.append(x)
    return np.array(ends)


@pytest.mark.parametrize("width", [0.05, 1.0, 30.0])
@pytest.mark.parametrize("name", LAWS)
def test_update_leaves_the_law_invariant_whatever_the_width(name, width):
    """Widths for which the interval doubles up to ten times, sometimes, and never."""
    law, log_density, support = LAWS[name]
    ends = moved(law, log_density, support, width, np.random.default_rng(1))
    assert scipy.stats.kstest(ends, law.cdf).pvalue > 1e-3
    assert (ends >= support[0]).all()
    assert (ends <= support[1]).all()


def test_the_law_would_move_without_neals_acceptance_test(monkeypatch):
    """So that the test above is known to see the difference."""
    law, log_density, support = LAWS["bimodal"]
    settings = {"n": 2000, "updates": 5}
    right = moved(law, log_density, support, 0.3, np.random.default_rng(2), **settings)
    monkeypatch.setattr(cylbo.numerics.slice_sampler, "_reachable", lambda *_: True)
    wrong = moved(law, log_density, support, 0.3, np.random.default_rng(2), **settings)
    assert scipy.stats.kstest(right, law.cdf).pvalue > 0.01
    assert scipy.stats.kstest(wrong, law.cdf).pvalue < 1e-8


@pytest.mark.parametrize(("name", "width"), [("bimodal", 0.5), ("uniform", 2.0), ("gamma", 2.0)])
def test_any_limit_to_the_doublings_leaves_the_law_invariant(monkeypatch, name, width):
    """Without doubling all depends on where the first interval lies about the point."""
    law, log_density, support = LAWS[name]
    for limit in (0, 1, 3):
        monkeypatch.setattr(cylbo.numerics.slice_sampler, "MAX_DOUBLINGS", limit)
        ends = moved(law, log_density, support, width, np.random.default_rng(3))
        assert scipy.stats.kstest(ends, law.cdf).pvalue > 1e-3


def effective_size(values):
    """n / (1 + 2 sum of autocorrelations), the sum cut at the first negative pair (Geyer 1992)."""
    n = len(values)
    centred = values - values.mean()
    spectrum = np.abs(np.fft.rfft(centred, 2 * n)) ** 2
    correlation = np.fft.irfft(spectrum)[:n]
    correlation /= correlation[0]
    pairs = correlation[: n // 2 * 2].reshape(-1, 2).sum(1)
    stop = np.argmax(pairs < 0) if (pairs < 0).any() else len(pairs)
    return n / max(2.0 * pairs[:stop].sum() - 1.0, 1.0)


def assert_mean_of(values, expected, sds=4.5):
    """Within some standard errors, as many as the effective size gives."""
    error = values.std() / math.sqrt(effective_size(values))
    assert abs(values.mean() - expected) < sds * error


@pytest.mark.parametrize("tune_widths", [True, False])
@pytest.mark.parametrize("name", ["gamma", "beta", "truncated normal", "gumbel"])
def test_one_chain_has_the_moments_and_quantiles_of_the_law(name, tune_widths):
    law, log_density, support = LAWS[name]
    states, _ = sample(
        lambda theta, _: log_density(float(theta[0])),
        Chain(np.array([law.mean()]), np.array([0.3])),
        6000,
        np.random.default_rng(4),
        lower=np.array([support[0]]),
        upper=np.array([support[1]]),
        tune_widths=tune_widths,
    )
    x = states[:, 0]
    assert_mean_of(x, law.mean())
    assert_mean_of((x - law.mean()) ** 2, law.var())
    for q in (0.05, 0.25, 0.5, 0.75, 0.95):
        assert_mean_of((x <= law.ppf(q)).astype(float), q)


COVARIANCE = np.array([[1.0, 0.8, 0.0], [0.8, 1.0, -0.3], [0.0, -0.3, 4.0]])
PRECISION = np.linalg.inv(COVARIANCE)


def correlated(theta, floor):
    return -0.5 * float(theta @ PRECISION @ theta)


def test_chain_on_a_correlated_normal_has_its_means_and_covariances():
    p = len(COVARIANCE)
    states, _ = sample(
        correlated,
        Chain(np.zeros(p), np.array([0.1, 1.0, 10.0])),
        5000,
        np.random.default_rng(5),
        lower=np.full(p, -math.inf),
        upper=np.full(p, math.inf),
        tune_widths=False,
    )
    for i in range(p):
        assert_mean_of(states[:, i], 0.0)
        for j in range(p):
            assert_mean_of(states[:, i] * states[:, j], COVARIANCE[i, j])


def test_one_sweep_from_exact_draws_leaves_a_correlated_normal_invariant():
    rng = np.random.default_rng(6)
    free = np.full(3, math.inf)
    starts = rng.multivariate_normal(np.zeros(3), COVARIANCE, 2000)
    ends = []
    for theta in starts:
        end, value = sweep(correlated, theta, correlated(theta, 0.0), rng, lower=-free, upper=free, widths=np.ones(3))
        assert value == pytest.approx(correlated(end, 0.0))
        ends.append(end)
    distance = np.einsum("ni,ij,nj->n", ends, PRECISION, ends)
    assert scipy.stats.kstest(distance, scipy.stats.chi2(3).cdf).pvalue > 1e-3
    for direction in np.eye(3):
        sd = math.sqrt(direction @ COVARIANCE @ direction)
        assert scipy.stats.kstest(ends @ direction / sd, scipy.stats.norm.cdf).pvalue > 1e-3


def skewed(theta, floor):
    """Independent gammas of shape 2."""
    return float(np.log(theta).sum() - theta.sum()) if (theta > 0).all() else -math.inf


def run(seed, density=skewed, n_sweeps=20, *, tune_widths=True):
    chain = Chain(np.array([1.0, 2.0]), np.array([0.5, 0.5]))
    rng = np.random.default_rng(seed)
    return sample(density, chain, n_sweeps, rng, lower=np.zeros(2), upper=np.full(2, math.inf), tune_widths=tune_widths)


def test_same_generator_same_chain():
    (first, first_chain), (again, again_chain) = run(7), run(7)
    assert np.array_equal(first, again)
    assert np.array_equal(first_chain.theta, again_chain.theta)
    assert np.array_equal(first_chain.widths, again_chain.widths)
    assert not np.array_equal(first, run(8)[0])


@pytest.mark.parametrize("below", [1e-9, 1e9, math.inf])
def test_any_number_below_the_floor_will_do(below):
    """A density that only says "less than the floor" gives the same chain as one that is always exact."""

    def lazy(theta, floor):
        value = skewed(theta, floor)
        return value if value >= floor else floor - below

    assert np.array_equal(run(9)[0], run(9, lazy)[0])


def test_nothing_is_evaluated_outside_of_the_support():
    def watchful(theta, floor):
        assert (theta >= 0.0).all()
        assert (theta <= 1.0).all()
        return float(-theta.sum())

    sample(
        watchful,
        Chain(np.array([0.0, 1.0]), np.array([5.0, 0.01])),
        50,
        np.random.default_rng(10),
        lower=np.zeros(2),
        upper=np.ones(2),
        tune_widths=True,
    )


def test_coordinate_without_room_stays_and_the_others_move():
    def density(theta, floor):
        return -0.5 * float(theta[1]) ** 2

    states, chain = sample(
        density,
        Chain(np.array([3.0, 0.0]), np.array([0.7, 1.0])),
        30,
        np.random.default_rng(11),
        lower=np.array([3.0, -10.0]),
        upper=np.array([3.0, 10.0]),
        tune_widths=True,
    )
    assert (states[:, 0] == 3.0).all()
    assert len(set(states[:, 1])) == 30
    assert chain.widths[0] == 0.7


def test_every_sweep_moves_every_coordinate_in_changing_order():
    order = []

    def density(theta, floor):
        order.append(theta.copy())
        return -0.5 * float(theta @ theta)

    free = np.full(4, math.inf)
    theta = np.ones(4)
    firsts = set()
    rng = np.random.default_rng(12)
    for _ in range(30):
        order.clear()
        new, _ = sweep(density, theta, -2.0, rng, lower=-free, upper=free, widths=np.ones(4))
        assert (new != theta).all()
        firsts.add(int(np.flatnonzero(order[0] != theta)[0]))
    assert firsts == {0, 1, 2, 3}
    assert np.array_equal(theta, np.ones(4))  # arguments are never modified


@pytest.mark.parametrize("value", [-math.inf, math.nan, math.inf])
def test_start_without_a_finite_density_is_refused(value):
    chain = Chain(np.zeros(1), np.ones(1))
    with pytest.raises(SamplingError, match="a start of positive density, got log density"):
        sample(
            lambda *_: value,
            chain,
            1,
            np.random.default_rng(0),
            lower=np.array([-1.0]),
            upper=np.array([1.0]),
            tune_widths=False,
        )
    assert issubclass(SamplingError, CylboError)


def test_slice_of_a_single_point_leaves_the_coordinate_where_it_is():
    x, value = slice_update(lambda t, _: 0.0 if t == 0.5 else -math.inf, 0.5, 0.0, np.random.default_rng(13), width=1.0)
    assert (x, value) == (0.5, 0.0)


def test_widths_are_drawn_towards_three_mean_moves_of_the_call():
    chain = Chain(np.array([1.0, 2.0]), np.array([1e-5, 50.0]))
    states, after = sample(
        skewed,
        chain,
        40,
        np.random.default_rng(14),
        lower=np.zeros(2),
        upper=np.full(2, math.inf),
        tune_widths=True,
    )
    path = np.vstack([chain.theta, states])
    moves = np.abs(np.diff(path, axis=0)).mean(0)
    np.testing.assert_allclose(after.widths, np.maximum(np.sqrt(3.0 * moves * chain.widths), 1e-4))
    assert np.array_equal(after.theta, states[-1])
    assert chain.widths.tolist() == [1e-5, 50.0]  # arguments are never modified


def test_widths_stand_still_unless_they_are_to_be_tuned():
    (fixed, fixed_chain), (tuned, tuned_chain) = (run(15, tune_widths=tune) for tune in (False, True))
    assert fixed_chain.widths.tolist() == [0.5, 0.5]
    assert (tuned_chain.widths != 0.5).all()
    assert np.array_equal(fixed, tuned)  # within a call they stand still either way
    assert np.array_equal(fixed_chain.theta, fixed[-1])


@pytest.mark.parametrize("start", [1e-3, 1.0, 1e3])
def test_tuned_widths_follow_the_slices_wherever_they_begin(start):
    """Normals of standard deviation 0.01 and 10: after some calls the widths are of that order, and stay."""
    sds = np.array([0.01, 10.0])

    def density(theta, floor):
        return -0.5 * float(((theta / sds) ** 2).sum())

    chain = Chain(np.zeros(2), np.full(2, start))
    rng = np.random.default_rng(16)
    free = np.full(2, math.inf)
    for call in range(25):
        _, chain = sample(density, chain, 20, rng, lower=-free, upper=free, tune_widths=True)
        if call >= 15:
            assert (chain.widths > 1.0 * sds).all()
            assert (chain.widths < 8.0 * sds).all()


def test_width_of_a_coordinate_that_hardly_moves_is_kept_from_vanishing():
    def density(theta, floor):
        return -0.5 * float((theta[0] / 1e-9) ** 2)

    chain = Chain(np.zeros(1), np.ones(1))
    rng = np.random.default_rng(17)
    for _ in range(12):
        _, chain = sample(density, chain, 5, rng, lower=-np.ones(1), upper=np.ones(1), tune_widths=True)
    assert chain.widths.tolist() == [cylbo.numerics.slice_sampler.NARROWEST]


@pytest.mark.parametrize("tune_widths", [True, False])
def test_many_short_calls_have_the_law_of_one_long_chain(tune_widths):
    """As the optimizer uses it: a few sweeps at a time, each call with the widths that the last one left."""
    law, log_density, support = LAWS["gamma"]
    chain = Chain(np.array([law.mean()]), np.array([0.1]))
    rng = np.random.default_rng(18)
    states = []
    for _ in range(600):
        new, chain = sample(
            lambda theta, _: log_density(float(theta[0])),
            chain,
            10,
            rng,
            lower=np.array([support[0]]),
            upper=np.array([support[1]]),
            tune_widths=tune_widths,
        )
        assert np.array_equal(chain.theta, new[-1])
        states.append(new[:, 0])
    x = np.concatenate(states)
    assert_mean_of(x, law.mean())
    assert_mean_of((x - law.mean()) ** 2, law.var())
    for q in (0.05, 0.25, 0.5, 0.75, 0.95):
        assert_mean_of((x <= law.ppf(q)).astype(float), q)


def test_tuned_widths_spare_evaluations():
    """Slices of width 0.05 looked for with a first interval of 30, and the other way round."""
    counts = {}
    for tune in (True, False):
        calls = 0

        def density(theta, floor):
            nonlocal calls
            calls += 1
            return -0.5 * float(((theta / np.array([0.02, 200.0])) ** 2).sum())

        chain = Chain(np.zeros(2), np.array([30.0, 0.5]))
        rng = np.random.default_rng(19)
        for _ in range(30):
            _, chain = sample(
                density, chain, 10, rng, lower=np.full(2, -math.inf), upper=np.full(2, math.inf), tune_widths=tune
            )
        counts[tune] = calls
    assert counts[True] < 0.8 * counts[False]
