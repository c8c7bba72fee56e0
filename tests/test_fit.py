"""The evidence against naive densities, its gradient against differences, the fit against processes drawn from it."""

import dataclasses
import itertools
import math

import mpmath
import numpy as np
import pytest
import scipy.optimize
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

import brute_force
from cylbo.methods import DEFAULT
from cylbo.model.beliefs import Beliefs, Form
from cylbo.model.blended import BlendedGP
from cylbo.model.evidence import WORST, Evidence
from cylbo.model.fit import PROBE_STEPS, at, fit
from cylbo.model.gp import Data

BELIEFS = Beliefs()
NO_NUGGET = Beliefs(log_nugget_range=(-60.0, 0.0))
PLAIN, STRETCHED, FULL = Form(), Form(stretched=True), Form(stretched=True, effects=True)
FORMS = [PLAIN, STRETCHED, FULL, Form(effects=True)]

every_form = pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.stretched:d}{form.effects:d}")


def naive_unit(y):
    return np.median([v - min(y) for v in y if v > min(y)])


def normal_names(form):
    """Of the entries of theta with normal priors, in their order; those of the stretches follow."""
    names = ["log_lengthscale", "log_nugget", "log_compression"]
    return [*names, "logit_share", "log_effect_lengthscale"] if form.effects else names


def naive_model(theta, d, form=PLAIN, beliefs=BELIEFS):
    """The model that theta stands for, with amplitude 1."""
    names = normal_names(form)
    value = dict(zip(names, theta, strict=False))
    z = theta[len(names) :] if form.stretched else np.zeros(d)
    assert len(z) == d
    return brute_force.Blended(
        ball_radius=math.sqrt(d),
        amplitude=1.0,
        noise=math.exp(value["log_nugget"]),
        lengthscale=math.exp(value["log_lengthscale"]),
        mean=0.0,
        stabilizer=0.0,
        stretch=tuple(math.exp(-beliefs.stretch_scale * v) for v in z),  # a lengthscale l exp(scale z) each
        share=1.0 / (1.0 + math.exp(-value["logit_share"])) if form.effects else 0.0,
        effect_lengthscale=math.exp(value.get("log_effect_lengthscale", 0.0)),
    )


def naive_correlation(model, x):
    return model.gram([(None, p) for p in x.tolist()])


def naive_log_prior(theta, d, form, beliefs):
    names = normal_names(form)
    log_prior = scipy.stats.norm.logpdf(theta[0] - 0.5 * math.log(d), *beliefs.log_lengthscale)
    log_prior += sum(
        scipy.stats.norm.logpdf(v, *getattr(beliefs, name)) for v, name in list(zip(theta, names, strict=False))[1:]
    )
    return log_prior + scipy.stats.t.logpdf(theta[len(names) :], beliefs.stretch_freedom).sum()


def naive_log_posterior(x, y, theta, form=PLAIN, beliefs=BELIEFS, all_y=None):
    """Of theta: log density of y in the unit of all, mean and amplitude the best a search finds, and log prior."""
    strength = math.exp(theta[2])
    all_y = y if all_y is None else all_y
    low, unit = min(all_y), naive_unit(all_y)

    def t(v):
        return mpmath.log(1 + strength * (v - low) / unit) / strength

    values = np.array([float(t(v)) for v in y])
    log_jacobian = sum(float(mpmath.log(mpmath.diff(t, v))) for v in y)
    R = naive_correlation(naive_model(theta, x.shape[1], form, beliefs), x)

    def minus_log_density(m_and_log_amplitude):
        m, log_amplitude = m_and_log_amplitude
        return -scipy.stats.multivariate_normal.logpdf(values, np.full(len(y), m), math.exp(log_amplitude) * R)

    start = [values.mean(), 2.0 * math.log(values.std())]
    options = {"xatol": 1e-6, "fatol": 1e-9, "maxiter": 4000, "maxfev": 4000}
    result = scipy.optimize.minimize(minus_log_density, start, method="Nelder-Mead", options=options)
    assert result.success
    return -result.fun + log_jacobian + naive_log_prior(theta, x.shape[1], form, beliefs)


class Exact:
    """The evidence in the precision of mpmath's context; what theta does not change is computed once."""

    def __init__(self, x, y, form):
        self.form, (self.n, self.d) = form, x.shape
        points = [[mpmath.mpf(v) for v in p] for p in x.tolist()]
        values = [mpmath.mpf(v) for v in y.tolist()]
        above = sorted(v - min(values) for v in values if v > min(values))
        unit = (above[len(above) // 2] + above[(len(above) - 1) // 2]) / 2
        self.gaps = [(v - min(values)) / unit for v in values]
        self.pairs = list(itertools.combinations_with_replacement(range(self.n), 2))
        self.squares = [[(a - b) ** 2 for a, b in zip(points[i], points[j], strict=True)] for i, j in self.pairs]
        half = mpmath.mpf("1.1")
        self.speeds = [j * mpmath.pi / (2 * half) for j in range(1, 33)]
        waves = [[[mpmath.cos(v * (a + half)) for a in p] for p in points] for v in self.speeds] if form.effects else []
        self.waves = [[2 * mpmath.fdot(wave[i], wave[j]) / self.d for wave in waves] for i, j in self.pairs]

    def cost(self, theta):
        names = normal_names(self.form)
        value = dict(zip(names, theta, strict=False))
        z = theta[len(names) :]
        lengthscale, nugget, strength = (mpmath.exp(v) for v in theta[:3])
        scale, freedom = mpmath.mpf(BELIEFS.stretch_scale), mpmath.mpf(BELIEFS.stretch_freedom)
        lengthscales2 = [(lengthscale * mpmath.exp(scale * v)) ** 2 for v in z] or [lengthscale**2] * self.d
        rates2 = [1 / v for v in lengthscales2]
        share, density = mpmath.mpf(0), [mpmath.mpf(1)]
        if self.form.effects:
            share = 1 / (1 + mpmath.exp(-value["logit_share"]))
            rate2 = 5 * mpmath.exp(-2 * value["log_effect_lengthscale"])
            full = [(rate2 + speed**2) ** -3 for speed in self.speeds]
            density = [max(weight - mpmath.mpf("1e-6") * full[0], 0) for weight in full]
        total = mpmath.fsum(density)
        R = nugget * mpmath.eye(self.n)
        for k, (i, j) in enumerate(self.pairs):
            s = mpmath.sqrt(5 * mpmath.fdot(self.squares[k], rates2))
            correlation = (1 + s + s * s / 3) * mpmath.exp(-s)
            effects = mpmath.fdot(density, self.waves[k]) / total if self.form.effects else 0
            R[i, j] += (1 - share) * correlation + share * effects
            R[j, i] = R[i, j]
        ones, t = mpmath.ones(self.n, 1), mpmath.matrix([mpmath.log(1 + strength * g) / strength for g in self.gaps])
        u, v = mpmath.lu_solve(R, ones), mpmath.lu_solve(R, t)
        m = (ones.T * v)[0] / (ones.T * u)[0]
        amplitude = ((t - m * ones).T * (v - m * u))[0] / self.n
        cost = (self.n * mpmath.log(amplitude) + mpmath.log(mpmath.det(R))) / 2
        cost += sum(mpmath.log(1 + strength * g) for g in self.gaps)
        priors = [getattr(BELIEFS, name) for name in names]
        in_sqrt_d = [theta[0] - mpmath.log(self.d) / 2, *theta[1 : len(names)]]
        cost += sum(((v - mean) / sd) ** 2 for v, (mean, sd) in zip(in_sqrt_d, priors, strict=True)) / 2
        return cost + (freedom + 1) * sum(mpmath.log(1 + v * v / freedom) for v in z) / 2


def exact(x, y, theta, form=PLAIN):
    """Value and gradient of the evidence, with 50 digits: enough to lose 20 to differences and 10 to rounding."""
    with mpmath.workdps(50):
        truth, center, step = Exact(x, y, form), [mpmath.mpf(v) for v in theta.tolist()], mpmath.mpf("1e-20")
        value = truth.cost(center)
        shifted = [truth.cost([v + step * (i == j) for j, v in enumerate(center)]) for i in range(len(theta))]
        return float(value), np.array([float((cost - value) / step) for cost in shifted])


def central_differences(evidence, theta, step=1e-4):
    """Of fourth order: rounding, not the step, is what limits them."""
    costs = np.array([[evidence(theta + k * e)[0] for k in (-2, -1, 1, 2)] for e in step * np.eye(len(theta))])
    return costs @ [1.0, -8.0, 8.0, -1.0] / (12.0 * step)


def problem(seed, n, d, form=PLAIN):
    """Points of the box, skewed values, a moderate theta."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (n, d))
    y = 3.0 + np.exp(rng.standard_normal(n)) * 10.0 ** rng.uniform(-3.0, 3.0)
    theta = rng.uniform([-2.0 + 0.5 * math.log(d), -12.0, -4.0], [2.0 + 0.5 * math.log(d), 0.0, 3.0])
    of_effects = rng.uniform([-5.0, -2.9], [5.0, 1.6]) if form.effects else []
    return x, y, np.concatenate([theta, of_effects, rng.uniform(-6.0, 6.0, d) if form.stretched else []])


def drawn(seed, *, n=150, d=2, lengthscale=0.5, noise=0.0, **options):
    """Points and a sample of the process with amplitude 1 there, observed with noise of that variance."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (n, d))
    options = {"stretch": (1.0,) * d, **options}
    model = brute_force.Blended(math.sqrt(d), 1.0, 1e-12, lengthscale, 0.0, stabilizer=0.0, **options)
    factor = np.linalg.cholesky(naive_correlation(model, x))
    return x, factor @ rng.standard_normal(n) + math.sqrt(noise) * rng.standard_normal(n)


def starts(evidence):
    """One that trusts the values, one that sees noise."""
    two = np.stack([evidence.prior_mean] * 2)
    two[:, 1] = -16.0, -3.0
    return list(two)


def fitted_to(x, y, beliefs=BELIEFS, form=PLAIN):
    evidence = Evidence(x, y, beliefs, form)
    return fit(evidence, starts(evidence), 60)


# ---- the evidence


@pytest.mark.parametrize(("form", "size"), list(zip(FORMS, [3, 3 + 7, 5 + 7, 5], strict=True)))
def test_a_form_has_as_many_hyperparameters_as_its_evidence(form, size):
    x, y, _ = problem(0, 5, 7)
    evidence = Evidence(x, y, BELIEFS, form)
    assert form.size(7) == size
    assert len(evidence.prior_mean) == len(evidence.lower) == len(evidence.upper) == size
    assert (evidence.lower < evidence.prior_mean).all()
    assert (evidence.prior_mean < evidence.upper).all()


@every_form
@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_evidence_is_the_log_density_of_the_values_up_to_a_constant(seed, d, form):
    # catches: a forgotten Jacobian or prior, a wrong factor of n, a lengthscale not measured in sqrt(d)
    x, y, _ = problem(seed, 12, d)
    thetas = [problem(100 * seed + i, 12, d, form)[2] for i in range(4)]
    evidence = Evidence(x, y, BELIEFS, form)
    found = np.array([-evidence(theta)[0] for theta in thetas])
    expected = np.array([naive_log_posterior(x, y, theta, form) for theta in thetas])
    np.testing.assert_allclose(found - found[0], expected - expected[0], rtol=1e-6, atol=1e-6)


@every_form
def test_other_beliefs_are_heard(form):
    x, y, theta = problem(7, 10, 3, form)
    beliefs = Beliefs(
        log_lengthscale=(1.0, 0.3),
        log_nugget=(-3.0, 0.5),
        log_compression=(2.0, 0.7),
        logit_share=(1.0, 0.4),
        log_effect_lengthscale=(0.6, 0.2),
        stretch_scale=0.2,
        stretch_freedom=5.0,
    )
    evidence = Evidence(x, y, beliefs, form)
    shift = np.resize([0.5, 0.4, -0.6], len(theta))
    thetas = [theta, theta + shift]
    expected = np.diff([naive_log_posterior(x, y, theta, form, beliefs) for theta in thetas])
    assert -np.diff([evidence(theta)[0] for theta in thetas]) == pytest.approx(expected, rel=1e-6)


@every_form
def test_only_some_of_the_data_are_looked_at_in_the_unit_of_all(form):
    # catches: a unit of the few, with which the compression would mean something else to predictions from all
    x, y, _ = problem(8, 30, 3)
    among = np.array([2, 4, 5, 9, 17, 20, 21, 28])
    assert y[among].min() > y.min()
    evidence = Evidence(x, y, BELIEFS, form, among=among)
    thetas = [problem(i, 30, 3, form)[2] for i in range(3)]
    found = np.array([-evidence(theta)[0] for theta in thetas])
    expected = np.array([naive_log_posterior(x[among], y[among], theta, form, all_y=y) for theta in thetas])
    np.testing.assert_allclose(found - found[0], expected - expected[0], rtol=1e-6, atol=1e-6)
    gradient = evidence(thetas[0])[1]
    np.testing.assert_allclose(gradient, central_differences(evidence, thetas[0]), rtol=1e-5, atol=1e-5)


@every_form
def test_where_the_box_lies_makes_no_difference(form):
    x, y, theta = problem(6, 12, 3, form)
    middle = np.array([0.9, -0.4, 0.0])
    here, there = Evidence(x, y, BELIEFS, form), Evidence(x + middle, y, BELIEFS, form, middle=middle)
    (value, gradient), (other_value, other_gradient) = here(theta), there(theta)
    assert other_value == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(other_gradient, gradient, rtol=1e-7, atol=1e-8)
    features, others = here.kernel(theta).features(x), there.kernel(theta).features(x + middle)
    np.testing.assert_allclose(others, features, rtol=0.0, atol=1e-13)


@every_form
@pytest.mark.parametrize("d", [1, 5])
@given(seed=st.integers(0, 10**6), n=st.integers(2, 14))
@settings(max_examples=40)
def test_gradient_matches_central_differences(form, d, seed, n):
    x, y, theta = problem(seed, n, d, form)
    evidence = Evidence(x, y, BELIEFS, form)
    _, gradient = evidence(theta)
    np.testing.assert_allclose(gradient, central_differences(evidence, theta), rtol=1e-5, atol=1e-5)


@every_form
@pytest.mark.parametrize(("seed", "d"), [*((seed, 50) for seed in range(5)), (0, 160), (1, 500)])
def test_gradient_matches_central_differences_in_many_dimensions(seed, d, form):
    # beyond a hundred there are fewer cosines
    x, y, theta = problem(seed, 14, d, form)
    evidence = Evidence(x, y, BELIEFS, form)
    _, gradient = evidence(theta)
    np.testing.assert_allclose(gradient, central_differences(evidence, theta), rtol=1e-5, atol=1e-5)


@every_form
@pytest.mark.parametrize("d", [1, 5, 50])
@pytest.mark.parametrize("log_nugget", [-20.7, -14.0, -3.0])
def test_value_and_gradient_are_right_where_two_points_are_equal(d, log_nugget, form):
    x, y, theta = problem(d, 6, d, form)
    x[3] = x[5]  # with different values: noise to be explained
    theta[:2] = 0.5 * math.log(d), log_nugget
    value, gradient = Evidence(x, y, BELIEFS, form)(theta)
    exact_value, exact_gradient = exact(x, y, theta, form)
    assert value == pytest.approx(exact_value, rel=1e-5)
    np.testing.assert_allclose(gradient, exact_gradient, rtol=1e-5, atol=1e-5)


def corners(evidence, *, at_most, seed=0):
    """Of the box in which theta is sought: all of them, or some where there are more."""
    if 2 ** len(evidence.lower) <= at_most:
        return [np.array(corner) for corner in itertools.product(*zip(evidence.lower, evidence.upper, strict=True))]
    coins = np.random.default_rng(seed).random((at_most, len(evidence.lower))) < 0.5
    return list(np.where(coins, evidence.lower, evidence.upper))


@every_form
@pytest.mark.parametrize("d", [1, 5, 50])
def test_value_and_gradient_are_right_in_the_corners_of_the_ranges(d, form):
    # with the least nugget and the longest lengthscale R has a condition of 1e10: differences would drown in rounding
    x, y, _ = problem(d, 6, d)
    evidence = Evidence(x, y, BELIEFS, form)
    for corner in corners(evidence, at_most=8 if form.size(d) < 20 else 3):
        value, gradient = evidence(corner)
        exact_value, exact_gradient = exact(x, y, corner, form)
        assert value == pytest.approx(exact_value, rel=1e-6, abs=1e-6)
        np.testing.assert_allclose(gradient, exact_gradient, rtol=1e-5, atol=1e-5)


@every_form
@pytest.mark.parametrize(("scale", "offset"), [(1e-3, 0.0), (1e3, -7e5), (1e150, 0.0), (4.0, 1e3)])
def test_evidence_does_not_depend_on_unit_and_origin_of_the_values(scale, offset, form):
    x, y, theta = problem(3, 12, 3, form)
    y = np.round(y, 3)
    evidence, other = Evidence(x, y, BELIEFS, form), Evidence(x, scale * y + offset, BELIEFS, form)
    (value, gradient), (other_value, other_gradient) = evidence(theta), other(theta)
    assert other_value == pytest.approx(value, rel=1e-7)
    np.testing.assert_allclose(other_gradient, gradient, rtol=1e-6, atol=1e-6)
    assert other.profile(theta).score == pytest.approx(evidence.profile(theta).score, rel=1e-7)


def test_evidence_does_not_depend_on_the_order_of_the_data_nor_on_rotations():
    x, y, theta = problem(4, 12, 3)
    rng = np.random.default_rng(0)
    order = rng.permutation(12)
    rotation = scipy.stats.ortho_group.rvs(3, random_state=rng)
    value, _ = Evidence(x, y, BELIEFS, PLAIN)(theta)
    assert Evidence(x[order] @ rotation, y[order], BELIEFS, PLAIN)(theta)[0] == pytest.approx(value, rel=1e-9)


@every_form
def test_evidence_does_not_depend_on_the_order_of_data_and_coordinates_nor_on_mirrors(form):
    x, y, theta = problem(4, 12, 4, form)
    rng = np.random.default_rng(0)
    order, coordinates, mirror = rng.permutation(12), rng.permutation(4), np.array([1.0, -1.0, -1.0, 1.0])
    moved = theta.copy()
    if form.stretched:
        moved[-4:] = theta[-4:][coordinates]
    value, _ = Evidence(x, y, BELIEFS, form)(theta)
    other = Evidence((mirror * x)[order][:, coordinates], y[order], BELIEFS, form)
    assert other(moved)[0] == pytest.approx(value, rel=1e-9)


def without_factor(form):
    """An evidence and a theta whose matrix has none: two equal rows first, so that the second pivot is exactly 0."""
    x, y, theta = problem(0, 6, 1, form)
    x[1] = x[0]
    theta[:3] = 0.0, -60.0, -1.0
    if form.effects:
        theta[3] = -60.0  # no effects, whose products round in their own way
    return Evidence(x, y, NO_NUGGET, form), theta


@every_form
def test_a_matrix_without_factor_is_the_worst_and_no_exception(form):
    evidence, theta = without_factor(form)
    value, gradient = evidence(theta)
    assert value == WORST
    assert gradient.tolist() == [0.0] * len(theta)
    assert evidence.profile(theta).score == -math.inf  # and predicts worse than any other


@every_form
def test_any_evidence_is_better_than_the_worst(form):
    x, y, _ = problem(1, 14, 1)
    y[0] = 1e9
    evidence = Evidence(x, y, BELIEFS, form)
    costs = [evidence(corner)[0] for corner in corners(evidence, at_most=64)]
    assert max(costs) < 1e-9 * WORST


def test_a_fit_that_never_finds_a_factor_still_gives_finite_hyperparameters():
    evidence, theta = without_factor(PLAIN)
    assert_usable(fit(evidence, [theta], 30))


def test_a_fit_leaves_a_start_without_factor_for_one_with():
    evidence, theta = without_factor(PLAIN)
    found = fit(evidence, [theta, np.array([0.0, -3.0, -1.0])], 30)
    assert evidence(found.theta)[0] < WORST


def assert_usable(found):
    h = found.h
    assert len(h) == 1
    assert np.isfinite([h.amplitude, h.noise_ratio, h.lengthscale, h.mean]).all()
    assert np.isfinite([*found.theta, *found.t, found.best]).all()
    assert min(h.amplitude[0], h.noise_ratio[0], h.lengthscale[0]) > 0.0
    assert np.isfinite(found.kernel.stretch).all()
    assert min(found.kernel.stretch) > 0.0
    assert 0.0 <= found.kernel.share < 1.0
    assert not math.isnan(found.score)


# ---- the score


def naive_score(x, y, theta, form, beliefs=BELIEFS):
    """Mean log density of the better half of the values, and of ten at least, each predicted from all others by the
    process of theta with the mean and the amplitude that are most likely given them all, but for log(2 pi) / 2.
    """
    strength = math.exp(theta[2])
    gap = (y - y.min()) / naive_unit(y)
    t, slope = np.log(1.0 + strength * gap) / strength, 1.0 / (1.0 + strength * gap)
    R = naive_correlation(naive_model(theta, x.shape[1], form, beliefs), x)
    u, v = np.linalg.solve(R, np.ones(len(y))), np.linalg.solve(R, t)
    m = v.sum() / u.sum()
    amplitude = (t - m) @ (v - m * u) / len(y)
    log_densities = []
    for i in sorted(range(len(y)), key=lambda i: y[i])[: max(10, len(y) // 2)]:
        rest = np.arange(len(y)) != i
        weights = np.linalg.solve(R[rest][:, rest], R[rest, i])
        mean, variance = m + weights @ (t[rest] - m), amplitude * (R[i, i] - weights @ R[rest, i])
        log_densities.append(scipy.stats.norm.logpdf(t[i], mean, math.sqrt(variance)) + math.log(slope[i]))
    return np.mean(log_densities) + 0.5 * math.log(2.0 * math.pi)


@every_form
@pytest.mark.parametrize("n", [2, 6, 15, 21, 30])  # all of them, ten of them, half of them
@pytest.mark.parametrize("d", [1, 3])
def test_the_score_is_what_leaving_out_one_value_after_the_other_gives(d, n, form):
    # catches: a density of the compressed values, which the strongest compression wins; the worse half; too few
    for seed in range(3):
        x, y, theta = problem(1000 * seed + n, n, d, form)
        found = Evidence(x, y, BELIEFS, form).profile(theta)
        assert found.score == pytest.approx(naive_score(x, y, theta, form), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_the_true_process_predicts_better_than_a_wrong_one(seed):
    x, y = drawn(seed, n=80, lengthscale=0.5, noise=1e-4)
    evidence = Evidence(x, y, BELIEFS, PLAIN)
    true, short, noisy = (
        evidence.profile(np.array([math.log(lengthscale), math.log(nugget), -5.0])).score
        for lengthscale, nugget in ((0.5, 1e-4), (0.05, 1e-4), (0.5, 1.0))
    )
    assert true > max(short, noisy) + 0.5


# ---- the fit


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("lengthscale", [0.3, 1.0])
def test_fit_recovers_the_lengthscale(seed, lengthscale):
    found = fitted_to(*drawn(seed, lengthscale=lengthscale))
    assert lengthscale / 2.0 < found.h.lengthscale[0] < 2.0 * lengthscale
    assert found.h.lengthscale[0] == pytest.approx(math.exp(found.theta[0]), rel=1e-14)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("noise", [0.01, 0.1])
def test_fit_finds_the_noise_that_is_there(seed, noise):
    x, y = drawn(seed, noise=noise)
    # hardly any compression, so that the noise stays what it was
    found = fitted_to(x, y, Beliefs(log_compression_range=(-5.0, -4.9)))
    variance = found.h.noise_ratio[0] * found.h.amplitude[0] * naive_unit(y) ** 2  # in the unit of y
    assert noise / 3.0 < variance < 3.0 * noise
    assert noise / 3.0 < found.h.noise_ratio[0] < 3.0 * noise


@pytest.mark.parametrize("seed", range(3))
def test_fit_finds_almost_no_noise_where_there_is_none(seed):
    assert fitted_to(*drawn(seed)).h.noise_ratio[0] < 1e-4


@pytest.mark.parametrize("seed", range(3))
def test_fit_compresses_a_heavy_tail_and_leaves_a_process_alone(seed):
    x, y = drawn(seed)
    plain, tailed = fitted_to(x, y), fitted_to(x, np.exp(4.0 * y))
    assert tailed.theta[2] > plain.theta[2] + 1.5
    assert math.exp(plain.theta[2]) < 1.0


@pytest.mark.parametrize("seed", range(3))
def test_fit_stretches_the_coordinates_as_the_process_has_them(seed):
    # one coordinate with a third of the common lengthscale, one with three times as much
    x, y = drawn(seed, n=100, d=3, lengthscale=1.0, stretch=(3.0, 1.0, 1.0 / 3.0))
    found = fitted_to(x, y, form=STRETCHED)
    rate = found.kernel.stretch / found.h.lengthscale[0]
    np.testing.assert_allclose(np.log(rate), np.log([3.0, 1.0, 1.0 / 3.0]), atol=math.log(1.5))
    assert found.kernel.spectrum is None
    assert found.kernel.share == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_fit_finds_the_effects_that_are_there(seed):
    few, many = (drawn(seed, n=60, d=5, lengthscale=1.0, share=share, effect_lengthscale=0.7) for share in (0.0, 0.99))
    without, with_effects = (fitted_to(*data, form=FULL) for data in (few, many))
    assert without.kernel.share < 0.5
    assert with_effects.kernel.share > 0.75
    assert 0.7 / 2.0 < math.exp(with_effects.theta[4]) < 2.0 * 0.7


@pytest.mark.parametrize("seed", range(3))
def test_stretches_that_do_nothing_stay_close_to_one(seed):
    x, y = drawn(seed, n=60, d=6, lengthscale=2.0)
    stretch = fitted_to(x, y, form=STRETCHED).kernel.stretch
    assert np.abs(np.log(stretch)).max() < math.log(1.5)


@pytest.mark.parametrize("seed", range(3))
def test_the_plain_form_has_no_stretch_and_no_effects(seed):
    kernel = fitted_to(*drawn(seed, n=20, d=4)).kernel
    assert kernel.stretch.tolist() == [1.0] * 4
    assert kernel.share == 0.0
    assert kernel.spectrum is None


@every_form
@pytest.mark.parametrize("d", [1, 3])
def test_a_fit_is_the_process_at_what_was_found(d, form):
    x, y = drawn(d, n=25, d=d, noise=0.01)
    evidence = Evidence(x, y, BELIEFS, form)
    found = fit(evidence, starts(evidence), 30)
    again = at(Evidence(x, y, BELIEFS, form), found.theta.copy())
    assert np.array_equal(found.theta, again.theta)
    for name in ("amplitude", "noise_ratio", "lengthscale", "mean"):
        assert np.array_equal(getattr(found.h, name), getattr(again.h, name))
    assert np.array_equal(found.t, again.t)
    assert np.array_equal(found.kernel.stretch, again.kernel.stretch)
    assert (found.kernel.share, found.best, found.score) == (again.kernel.share, again.best, again.score)
    assert found.score == pytest.approx(naive_score(x, y, found.theta, form), rel=1e-5, abs=1e-5)


@every_form
@pytest.mark.parametrize("seed", range(3))
def test_the_kernel_is_that_of_theta(seed, form):
    x, y, theta = problem(seed, 6, 3, form)
    kernel, model = Evidence(x, y, BELIEFS, form).kernel(theta), naive_model(theta, 3, form)
    np.testing.assert_allclose(kernel.stretch, model.stretch, rtol=1e-13)
    assert kernel.share == pytest.approx(model.share, rel=1e-13)
    features = kernel.features(x)
    full = [(5.0 / model.effect_lengthscale**2 + (j * math.pi / 2.2) ** 2) ** -3 for j in range(1, 33)]
    assert features.size == 6 * 3 * sum(weight > 1e-6 * full[0] for weight in full) * form.effects
    if form.effects:
        effects = [[math.fsum(map(model.effect, p, q)) / 3 for q in x.tolist()] for p in x.tolist()]
        np.testing.assert_allclose(features @ features.T, effects, rtol=0.0, atol=1e-12)


@every_form
@pytest.mark.parametrize("seed", range(3))
def test_the_best_of_all_ends_is_returned(seed, form):
    x, y, _ = problem(seed, 25, 2)
    evidence = Evidence(x, y, BELIEFS, form)
    rng = np.random.default_rng(seed)
    several = [rng.uniform(evidence.lower, evidence.upper) for _ in range(3)]
    alone = [evidence(fit(evidence, [start], 5).theta)[0] for start in several]
    for order in itertools.permutations(several):
        assert evidence(fit(evidence, order, 5).theta)[0] == pytest.approx(min(alone), rel=1e-12)
    assert all(end <= evidence(start)[0] for end, start in zip(alone, several, strict=True))
    assert max(alone) > min(alone) + 1e-3  # else there was nothing to choose


@pytest.mark.parametrize("form", [STRETCHED, FULL])
@pytest.mark.parametrize("seed", range(3))
def test_only_the_start_that_leads_to_the_best_end_is_followed_all_the_way(seed, form):
    x, y, _ = problem(seed, 25, 2)
    evidence = Evidence(x, y, BELIEFS, form)
    rng = np.random.default_rng(seed)
    several = [rng.uniform(evidence.lower, evidence.upper) for _ in range(3)]
    probed = [evidence(fit(evidence, [start], PROBE_STEPS).theta)[0] for start in several]
    alone = fit(evidence, [several[np.argmin(probed)]], 40)
    evidence.evaluations = 0
    found = fit(evidence, several, 40)
    per_step, last_search = 2, 21  # L-BFGS-B finishes its last line search, of 20 evaluations at most
    assert evidence.evaluations <= per_step * (3 * PROBE_STEPS + 40 - PROBE_STEPS) + 4 * last_search
    assert np.array_equal(found.theta, alone.theta)
    assert evidence(found.theta)[0] < min(probed)


@every_form
@pytest.mark.parametrize("step", [-100.0, 100.0])
def test_starts_outside_the_ranges_are_brought_in_and_stay_in(step, form):
    x, y, _ = problem(2, 12, 3)
    evidence = Evidence(x, y, BELIEFS, form)
    start = evidence.prior_mean + step
    before = start.copy()
    found = fit(evidence, [start], 30)
    assert (found.theta >= evidence.lower).all()
    assert (found.theta <= evidence.upper).all()
    assert np.array_equal(start, before)


def test_more_steps_cost_more_evaluations_up_to_the_budget():
    x, y, _ = problem(5, 30, 3)
    counts = []
    for steps in (2, 30):
        evidence = Evidence(x, y, BELIEFS, PLAIN)
        fit(evidence, [evidence.upper - 0.5], steps)
        counts.append(evidence.evaluations)
    assert counts[0] < counts[1]
    assert counts[0] <= 2 * 2 + 21  # L-BFGS-B finishes its last line search, of 20 evaluations at most


@every_form
@pytest.mark.parametrize("values", [[2.0, 2.0, 2.0, 2.0], [1e308] * 5, [0.0, -0.0], [-3.0]])
def test_equal_values_give_finite_hyperparameters(values, form):
    rng = np.random.default_rng(0)
    evidence = Evidence(rng.uniform(-1.0, 1.0, (len(values), 3)), np.array(values), BELIEFS, form)
    found = fit(evidence, starts(evidence), 30)
    assert_usable(found)
    assert not found.t.any()
    assert np.array_equal(found.theta, evidence.prior_mean)  # nothing was learned
    assert found.score == -math.inf  # nor predicted
    value, gradient = evidence(evidence.prior_mean)
    assert np.isfinite([value, *gradient]).all()


@pytest.mark.parametrize("values", [[1.0, 0.0], [-1e308, 1e308], [0.0, 5e-300], [1.0, np.nextafter(1.0, 2.0)]])
@pytest.mark.parametrize("d", [1, 50])
@every_form
def test_two_values_are_enough(values, d, form):
    x = np.random.default_rng(0).uniform(-1.0, 1.0, (2, d))
    found = fitted_to(x, np.array(values), form=form)
    assert_usable(found)
    assert found.t.argmin() == np.argmin(values)


@every_form
def test_two_different_values_at_the_same_point_are_noise(form):
    x = np.repeat(np.random.default_rng(0).uniform(-1.0, 1.0, (10, 2)), 2, 0)
    y = np.random.default_rng(1).standard_normal(20)
    found = fitted_to(x, y, form=form)
    assert_usable(found)
    assert found.h.noise_ratio[0] > 0.1


@every_form
@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("d", [1, 3])
def test_best_is_the_lowest_posterior_mean_at_the_data(noise, d, form):
    x, y = drawn(11, n=20, d=d, noise=noise)
    found = fitted_to(x, y, form=form)
    nugget, strength = np.exp(found.theta[1:3])
    gap = (y - y.min()) / naive_unit(y)
    t = np.log(1.0 + strength * gap) / strength
    R = naive_correlation(naive_model(found.theta, d, form), x)
    K = R - nugget * np.eye(len(y))
    ones = np.linalg.solve(R, np.ones(len(y)))
    m = ones @ t / ones.sum()
    posterior_mean = m + K @ np.linalg.solve(R, t - m)
    np.testing.assert_allclose(found.t, t, rtol=1e-12)
    assert found.best == pytest.approx(posterior_mean.min(), abs=1e-7)
    assert found.h.mean[0] == pytest.approx(m, rel=1e-6)
    assert found.h.amplitude[0] == pytest.approx((t - m) @ np.linalg.solve(R, t - m) / len(y), rel=1e-5)
    assert found.h.noise_ratio[0] == pytest.approx(nugget, rel=1e-12)
    if noise:
        assert found.best > t.min() + 1e-3  # catches: the lowest value, which is luck


def gp_of(x, found):
    data = Data.of(x, found.t, found.kernel)
    return BlendedGP(data, found.kernel, found.h, stabilizer=DEFAULT.stabilizer, jitters=DEFAULT.jitters)


@every_form
@pytest.mark.parametrize("d", [1, 2, 50])
def test_without_noise_the_process_goes_through_the_compressed_values(d, form):
    x, y = drawn(5, n=30, d=d, lengthscale=0.5 * math.sqrt(d))
    x[4] = 0.0  # the centre is a point like any other
    found = fitted_to(x, np.exp(y), dataclasses.replace(BELIEFS, log_nugget=(-20.0, 0.1)), form)
    mean = gp_of(x, found).posterior(x).mean[0]
    np.testing.assert_allclose(mean, found.t, atol=1e-6)


@every_form
def test_with_noise_the_best_is_what_the_process_says(form):
    # catches: a kernel handed on that is not the one that was fitted
    x, y = drawn(6, n=40, d=3, noise=0.1, stretch=(2.0, 1.0, 0.5), share=0.5)
    found = fitted_to(x, y, form=form)
    assert found.best == pytest.approx(gp_of(x, found).posterior(x).mean.min(), abs=1e-8)


def test_the_fit_is_no_worse_with_a_point_far_worse_than_all_others():
    # catches: a unit taken from the range, or from the standard deviation
    x, y = drawn(8, n=60)
    y[y.argmax()] = 1e12
    found = fitted_to(x, y)
    assert_usable(found)
    rest = np.argsort(y)[:-1]
    assert scipy.stats.spearmanr(found.t, y).statistic == pytest.approx(1.0)
    assert found.t[rest].std() > 1e-2 * found.t.std()


@every_form
def test_data_are_not_modified(form):
    x, y, theta = problem(9, 10, 3, form)
    copies = x.copy(), y.copy(), theta.copy()
    evidence = Evidence(x, y, BELIEFS, form)
    first = evidence(theta)
    fit(evidence, [theta], 30)
    at(evidence, theta)
    second = evidence(theta)
    assert first[0] == second[0]
    assert np.array_equal(first[1], second[1])
    for now, before in zip((x, y, theta), copies, strict=True):
        assert np.array_equal(now, before)


# ---- noise that was told


def told_problem(seed, n, d, form=PLAIN):
    """As `problem`, with standard deviations of the noise, some of them 0, and a theta with log A before stretches."""
    x, y, theta = problem(seed, n, d, form)
    rng = np.random.default_rng(seed + 1)
    noise = naive_unit(y) * np.exp(rng.normal(-1.0, 1.0, n)) * (rng.random(n) < 0.7)
    return x, y, noise, np.insert(theta, len(normal_names(form)), rng.uniform(-3.0, 3.0))


def split_told(theta, form):
    """theta without log A, and log A."""
    k = len(normal_names(form))
    return np.delete(theta, k), theta[k]


def naive_told(x, y, noise, theta, form, all_y=None):
    """Compressed values, the log of their Jacobian, and the covariance of the function and of what was observed, all
    from their definitions: noise is as much smaller than in y as the compression is flat.
    """
    rest, log_amplitude = split_told(theta, form)
    strength = math.exp(theta[2])
    all_y = y if all_y is None else all_y
    low, unit = min(all_y), naive_unit(all_y)

    def t(v):
        return mpmath.log(1 + strength * (v - low) / unit) / strength

    slope = np.array([float(mpmath.diff(t, v)) for v in y])
    model = naive_model(rest, x.shape[1], form)
    observed = math.exp(log_amplitude) * naive_correlation(model, x)
    latent = observed - math.exp(log_amplitude) * model.noise * np.eye(len(y))
    values = np.array([float(t(v)) for v in y])
    return values, np.log(slope).sum(), latent, observed + np.diag((noise * slope) ** 2)


def likeliest_mean(t, covariance):
    ones = np.linalg.solve(covariance, np.ones(len(t)))
    return ones @ t / ones.sum()


def naive_told_log_posterior(x, y, noise, theta, form=PLAIN, all_y=None):
    t, log_jacobian, _, covariance = naive_told(x, y, noise, theta, form, all_y)
    rest, log_amplitude = split_told(theta, form)
    log_prior = naive_log_prior(rest, x.shape[1], form, BELIEFS)
    log_prior += scipy.stats.norm.logpdf(log_amplitude, *BELIEFS.log_amplitude)
    mean = np.full(len(t), likeliest_mean(t, covariance))
    return scipy.stats.multivariate_normal.logpdf(t, mean, covariance) + log_jacobian + log_prior


@every_form
def test_with_told_noise_there_is_one_more_hyperparameter(form):
    x, y, noise, theta = told_problem(0, 5, 7, form)
    evidence = Evidence(x, y, BELIEFS, form, noise=noise)
    assert len(evidence.prior_mean) == len(evidence.lower) == len(evidence.upper) == form.size(7) + 1 == len(theta)
    assert (evidence.lower < evidence.prior_mean).all()
    assert (evidence.prior_mean < evidence.upper).all()
    rest, _ = split_told(theta, form)
    np.testing.assert_allclose(evidence.kernel(theta).stretch, naive_model(rest, 7, form).stretch, rtol=1e-13)


@every_form
@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_evidence_with_told_noise_is_the_log_density_of_the_values_up_to_a_constant(seed, d, form):
    # catches: a noise that is not compressed with its value, one relative to the amplitude, a forgotten prior of log A
    x, y, noise, _ = told_problem(seed, 12, d)
    thetas = [told_problem(100 * seed + i, 12, d, form)[3] for i in range(4)]
    evidence = Evidence(x, y, BELIEFS, form, noise=noise)
    found = np.array([-evidence(theta)[0] for theta in thetas])
    expected = np.array([naive_told_log_posterior(x, y, noise, theta, form) for theta in thetas])
    np.testing.assert_allclose(found - found[0], expected - expected[0], rtol=1e-7, atol=1e-7)


@every_form
def test_told_noise_is_measured_in_the_unit_of_all_data_too(form):
    x, y, noise, _ = told_problem(8, 30, 3)
    among = np.array([2, 4, 5, 9, 17, 20, 21, 28])
    assert y[among].min() > y.min()
    evidence = Evidence(x, y, BELIEFS, form, among=among, noise=noise)
    thetas = [told_problem(i, 30, 3, form)[3] for i in range(3)]
    found = np.array([-evidence(theta)[0] for theta in thetas])
    expected = [naive_told_log_posterior(x[among], y[among], noise[among], theta, form, all_y=y) for theta in thetas]
    np.testing.assert_allclose(found - found[0], np.array(expected) - expected[0], rtol=1e-7, atol=1e-7)


@every_form
@pytest.mark.parametrize("d", [1, 5])
@given(seed=st.integers(0, 10**6), n=st.integers(2, 14))
@settings(max_examples=15)
def test_gradient_with_told_noise_matches_central_differences(form, d, seed, n):
    x, y, noise, theta = told_problem(seed, n, d, form)
    evidence = Evidence(x, y, BELIEFS, form, noise=noise)
    _, gradient = evidence(theta)
    # an amplitude that is far too small makes costs of thousands, whose differences round as much more
    atol = 1e-5 + 1e-6 * np.abs(gradient).max()
    np.testing.assert_allclose(gradient, central_differences(evidence, theta), rtol=1e-5, atol=atol)


@every_form
def test_told_noise_of_zero_is_no_noise_with_the_amplitude_in_the_open(form):
    x, y, theta = problem(12, 12, 3, form)
    k = len(normal_names(form))
    profiled = Evidence(x, y, BELIEFS, form)
    told = Evidence(x, y, BELIEFS, form, noise=np.zeros(12))
    prior_mean, prior_sd = BELIEFS.log_amplitude

    def cost(log_amplitude):
        value, _ = told(np.insert(theta, k, log_amplitude))
        return value - 0.5 * ((log_amplitude - prior_mean) / prior_sd) ** 2

    best = scipy.optimize.minimize_scalar(cost, bracket=(-2.0, 2.0), tol=1e-10)
    found, expected = at(told, np.insert(theta, k, best.x)), at(profiled, theta)
    assert best.fun == pytest.approx(profiled(theta)[0], rel=1e-9)
    assert found.h.amplitude[0] == pytest.approx(expected.h.amplitude[0], rel=1e-6)
    assert found.h.amplitude[0] == math.exp(best.x)
    assert found.h.mean[0] == pytest.approx(expected.h.mean[0], rel=1e-9)
    np.testing.assert_allclose(found.predicted, expected.predicted, rtol=1e-9, atol=1e-9)
    assert found.score == pytest.approx(expected.score, rel=1e-6)
    assert found.told.tolist() == [0.0] * 12
    assert expected.told is None


@every_form
def test_evidence_with_told_noise_does_not_depend_on_unit_and_origin_of_the_values(form):
    x, y, noise, theta = told_problem(3, 12, 3, form)
    value, gradient = Evidence(x, y, BELIEFS, form, noise=noise)(theta)
    for scale, offset in ((1e-3, 0.0), (4.0, 1e3), (1e150, 0.0)):
        other = Evidence(x, scale * y + offset, BELIEFS, form, noise=scale * noise)(theta)
        assert other[0] == pytest.approx(value, rel=1e-7)
        np.testing.assert_allclose(other[1], gradient, rtol=1e-6, atol=1e-6)


@every_form
def test_with_told_noise_predictions_are_the_textbook_formulas(form):
    x, y, noise, theta = told_problem(13, 25, 3, form)
    t, _, latent, covariance = naive_told(x, y, noise, theta, form)
    mean = likeliest_mean(t, covariance)
    evidence = Evidence(x, y, BELIEFS, form, noise=noise)
    found, profile = at(evidence, theta), evidence.profile(theta)
    assert found.h.mean[0] == pytest.approx(mean, rel=1e-8)
    np.testing.assert_allclose(found.predicted, mean + latent @ np.linalg.solve(covariance, t - mean), atol=1e-8)
    expected = latent.diagonal() - np.einsum("ij,ji->i", latent, np.linalg.solve(covariance, latent))
    np.testing.assert_allclose(found.uncertainty**2, expected, rtol=1e-6, atol=1e-8 * covariance[0, 0])
    extra = covariance.diagonal() - latent.diagonal() - found.h.amplitude * found.h.noise_ratio
    np.testing.assert_allclose(found.told * found.h.amplitude, extra, rtol=1e-8, atol=1e-9 * covariance[0, 0])
    error, sd, log_density = [], [], []
    for i in range(25):  # each predicted from all others, with the mean of all
        rest = np.arange(25) != i
        weights = np.linalg.solve(covariance[rest][:, rest], covariance[rest, i])
        error.append(t[i] - mean - weights @ (t[rest] - mean))
        sd.append(math.sqrt(covariance[i, i] - weights @ covariance[rest, i]))
        log_density.append(scipy.stats.norm.logpdf(error[-1], 0.0, sd[-1]))
    np.testing.assert_allclose(profile.left_out[0], error, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(profile.left_out[1], sd, rtol=1e-6)
    better = np.argsort(y)[:12]
    log_slope = -np.log1p(math.exp(theta[2]) * (y - y.min()) / naive_unit(y))
    expected = (np.array(log_density) + log_slope)[better].mean() + 0.5 * math.log(2.0 * math.pi)
    assert found.score == pytest.approx(expected, rel=1e-6)


@every_form
def test_the_process_with_the_told_noise_handed_on_predicts_what_the_fit_says(form):
    x, y, noise, theta = told_problem(14, 20, 2, form)
    found = at(Evidence(x, y, BELIEFS, form, noise=noise), theta)
    gp = BlendedGP(Data.of(x, found.t, found.kernel), found.kernel, found.h, stabilizer=0.0, noise=found.told)
    np.testing.assert_allclose(gp.posterior(x).mean[0], found.predicted, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(gp.posterior(x).variance[0], found.uncertainty**2, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_noise_that_was_told_is_not_inferred_once_more(seed):
    x, y = drawn(seed, n=100, noise=0.1)
    weak = Beliefs(log_compression_range=(-5.0, -4.9))
    told = Evidence(x, y, weak, PLAIN, noise=np.full(100, math.sqrt(0.1)))
    found = fit(told, starts(told), 60)
    untold = fitted_to(x, y, weak)
    assert untold.h.noise_ratio[0] > 0.03
    assert found.h.noise_ratio[0] < 0.3 * untold.h.noise_ratio[0]
    assert 0.5 / 3.0 < found.h.lengthscale[0] < 3.0 * 0.5


@every_form
def test_equal_values_with_told_noise_give_finite_hyperparameters(form):
    x, _, noise, _ = told_problem(1, 6, 2)
    evidence = Evidence(x, np.full(6, 2.0), BELIEFS, form, noise=noise)
    assert_usable(fit(evidence, starts(evidence), 10))


@every_form
def test_told_noise_on_one_of_two_equal_points_is_nugget_enough(form):
    evidence, theta = without_factor(form)
    theta = np.insert(theta, len(normal_names(form)), 0.0)
    y = evidence.gaps  # as good as the values
    costs = [Evidence(evidence.x, y, NO_NUGGET, form, noise=noise)(theta)[0] for noise in (np.zeros(6), np.eye(6)[1])]
    assert costs[0] == WORST > 1e9 * costs[1]
