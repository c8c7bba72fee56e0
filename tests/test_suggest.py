"""One round: the ladder from the model down to a uniform point, and the settings a user may turn."""

import dataclasses
import math
import sys
import time
import zlib

import numpy as np
import pytest
import scipy.stats

import brute_force
import cylbo
from cylbo.errors import NotPositiveDefiniteError, SamplingError
from cylbo.model.beliefs import Form
from cylbo.model.blended import Blend, BlendedGP
from cylbo.model.gp import Data
from cylbo.numerics.slice_sampler import Chain
from cylbo.search import learn as learn_room
from cylbo.search import replicate
from cylbo.search import suggest as suggest_room
from cylbo.search.budget import UNLIMITED, Budget
from cylbo.search.data import Known
from cylbo.search.feasibility import learn_limits, log_chance
from cylbo.search.improvement import Acquired
from cylbo.search.learn import Fits, fitted, sampled
from cylbo.search.suggest import suggest
from cylbo.space.box import Box
from cylbo.space.named import Frame

QUICK = {"n_sobol": 256, "sweeps": 2, "first_sweeps": 5, "max_steps": 10, "fit_steps": 5, "warm_steps": 2}
METHODS = {name: dataclasses.replace(config, **QUICK) for name, config in cylbo.METHODS.items()}
CYLINDER = METHODS["cylinder"]
SAMPLED = {name: config for name, config in METHODS.items() if config.learn is sampled}
D = 3
DOMAIN = Box([(-1, 1)] * D).domain

every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
every_sampled_method = pytest.mark.parametrize("method", SAMPLED.values(), ids=SAMPLED)


def known(n=5, *, pending=0, failed=0, center=True):
    rng = np.random.default_rng(7)
    x = rng.uniform(-1, 1, (n + pending + failed, D))
    if center and n:
        x[0] = 0.0
    y = rng.standard_normal(n)
    return Known(x=x[:n], y=y, pending=x[n : n + pending], failed=x[n + pending :])


def rng(seed=0):
    return np.random.default_rng(seed)


def raises(error):
    def fail(*args, **kwargs):
        raise error("forced")

    return fail


def seen(data):
    return np.concatenate([data.x, data.pending, data.failed])


def thetas(state):
    """The hyperparameters that a chain or the fits of all forms hand on, in one row."""
    return state.theta if isinstance(state, Chain) else np.concatenate(list(state.thetas.values()))


def is_fresh(x, data):
    return bool((np.abs(seen(data) - x) > 1e-9).any(-1).all())


@every_method
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize(("pending", "failed"), [(0, 0), (2, 0), (0, 2), (2, 2)])
def test_the_model_suggests_a_new_point_of_the_domain(method, center, pending, failed):
    data = known(4, pending=pending, failed=failed, center=center)
    suggestion = suggest(data, None, DOMAIN, method, rng())
    assert suggestion.rung == "model"
    assert suggestion.x.shape == (D,)
    assert suggestion.x.dtype == np.float64
    assert bool(DOMAIN.contains(suggestion.x[None])[0])
    assert is_fresh(suggestion.x, data)
    assert isinstance(suggestion.state, Chain if method.learn is sampled else Fits)
    assert np.isfinite(thetas(suggestion.state)).all()


@every_method
@pytest.mark.parametrize("n", [0, 1])
def test_before_two_values_the_point_is_uniform(n, method):
    data = known(n, pending=3)
    points = [suggest(data, None, DOMAIN, method, rng(seed)) for seed in range(200)]
    assert {p.rung for p in points} == {"random"}
    assert all(p.state is None for p in points)
    x = np.stack([p.x for p in points])
    assert np.abs(x).max() <= 1.0
    # Of a uniform law on [-1, 1] the mean is 0, the mean square 1/3; 200 draws know them to 0.041 and 0.021
    assert np.abs(x.mean(0)).max() < 5 * 0.041
    assert np.abs((x**2).mean(0) - 1 / 3).max() < 5 * 0.021


@every_method
def test_a_round_is_a_function_of_its_arguments(method):
    data = known(5, pending=1, failed=1)
    before = [t.copy() for t in (data.x, data.y, data.pending, data.failed)]
    first, second = (suggest(data, None, DOMAIN, method, rng(3)) for _ in range(2))
    assert np.array_equal(first.x, second.x)
    assert np.array_equal(thetas(first.state), thetas(second.state))
    assert not np.array_equal(first.x, suggest(data, None, DOMAIN, method, rng(4)).x)
    after = (data.x, data.y, data.pending, data.failed)
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


def initial(method, data):
    """What a sampler that cannot begin leaves to the model: the authors' first hyperparameters."""
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(learn_room, "sample", raises(SamplingError))
        return sampled(data, DOMAIN, None, method, rng())


def believed(method, data, at):
    """Mean and variance at a point, amplitude, and the values the model sees; initial hyperparameters."""
    learned = initial(method, data)
    gp = suggest_room._Model(data, learned, [], DOMAIN, method).gp
    posterior = gp.posterior(at[None])
    return posterior.mean.item(), posterior.variance.item(), gp.h.amplitude.item(), learned.y


@every_method
def test_an_open_point_is_believed_to_come_out_as_predicted(method):
    data = known(6)
    x = np.array([0.5, -0.5, 0.4])
    mean, variance, amplitude, _ = believed(method, data, x)
    new_mean, new_variance, _, _ = believed(method, dataclasses.replace(data, pending=x[None]), x)
    assert new_mean == pytest.approx(mean, abs=1e-6)
    assert new_variance < 2e-3 * amplitude < 0.1 * variance  # the noise is a thousandth of the amplitude


def test_what_an_open_point_promises_is_no_improvement_any_more():
    # On a slope the first suggestion goes far down; the second must not lie beside it for what that one will reach
    x = rng(8).uniform(-0.3, 0.3, (12, D))
    data = Known(x=x, y=x.sum(-1), pending=x[:0], failed=x[:0])
    first = suggest(data, None, DOMAIN, METHODS["default"], rng())
    opened = dataclasses.replace(data, pending=first.x[None])
    learned = fitted(opened, DOMAIN, None, METHODS["default"], rng())
    alone = suggest_room._Model(data, learned, [], DOMAIN, METHODS["default"])
    promised = alone.gp.posterior(first.x[None]).mean.item()
    assert promised < alone.best == learned.best
    assert suggest_room._Model(opened, learned, [], DOMAIN, METHODS["default"]).best == pytest.approx(promised)


@every_method
def test_no_value_is_invented_for_a_failed_point(method):
    data = known(6)
    x = data.x[data.y.argmin()] + 0.05
    assert believed(method, dataclasses.replace(data, failed=x[None]), x)[:3] == believed(method, data, x)[:3]


@pytest.mark.parametrize("form", cylbo.DEFAULT.forms)
def test_what_was_fitted_is_conditioned_on_too(form):
    # The values are those that the fit compressed, and the nugget is the one it found
    data, at = dataclasses.replace(known(6), exact=False), np.array([[0.5, -0.5, 0.4]])
    method = dataclasses.replace(METHODS["default"], forms=(form,), ambition=0.0, noise_ambition=0.0)
    learned = fitted(data, DOMAIN, None, method, rng())
    plain = suggest_room._Model(data, learned, [], DOMAIN, method).gp
    assert np.array_equal(plain.h.noise_ratio, learned.h.noise_ratio)
    at_data = plain.posterior(data.x).mean[0]
    assert at_data.min() == pytest.approx(learned.best, abs=1e-6)  # "the lowest posterior mean at the data"
    assert plain.kernel is learned.kernel
    opened = suggest_room._Model(dataclasses.replace(data, pending=at), learned, [], DOMAIN, method).gp
    assert opened.posterior(at).mean.item() == pytest.approx(plain.posterior(at).mean.item(), abs=1e-6)
    assert opened.posterior(at).variance.item() < plain.posterior(at).variance.item()


@every_sampled_method
def test_the_chain_is_handed_on(method):
    data = known()
    first = suggest(data, None, DOMAIN, method, rng())
    theta = first.state.theta.copy()
    second = suggest(data, first.state, DOMAIN, method, rng(1))
    assert not np.array_equal(second.state.theta, theta)
    assert np.array_equal(first.state.theta, theta)  # not modified in place


def test_what_was_fitted_is_handed_on_and_now_and_then_fitted_anew(monkeypatch):
    # All forms anew, that is from three more starts: below 30 evaluations, and then whenever they have grown by an
    # eighth; in between the one that is trusted, whenever they have grown by a thirty-second
    given = []
    fit = learn_room.fit
    monkeypatch.setattr(
        learn_room, "fit", lambda e, starts, steps: given.append((e.form, starts, steps)) or fit(e, starts, steps)
    )
    growth = {"refit_until": 30, "refit_growth": 1 / 8, "warm_growth": 1 / 32}
    method = dataclasses.replace(cylbo.DEFAULT, fit_steps=2, warm_steps=1, n_sobol=16, n_spray=1, max_steps=1, **growth)
    data, state, anew, warm = known(80), None, [], []
    for n in range(5, 80):
        last = state
        before = {} if last is None else {form: theta.copy() for form, theta in last.thetas.items()}
        given.clear()
        part = dataclasses.replace(data, x=data.x[:n], y=data.y[:n])
        state = suggest(part, last, DOMAIN, method, rng()).state
        for form, starts, steps in given:
            assert (len(starts), steps) == ((1, 1) if len(given) == 1 else (3 + (last is not None), 2))
            assert last is None or any(np.array_equal(start, before[form]) for start in starts)
        assert last is None or all(np.array_equal(last.thetas[form], before[form]) for form in before)  # not in place
        assert [form for form, _, _ in given] in ([], [last and last.form], list(method.forms))
        anew += [n] if len(given) == 3 else []
        warm += [n] if len(given) == 1 else []
    assert anew == [*range(5, 30), 33, 38, 43, 49, 56, 63, 71]
    assert warm == [30, 31, 32, 35, 37, 40, 42, 45, 47, 51, 53, 55, 58, 60, 62, 65, 68, 74, 77]


@every_sampled_method
@pytest.mark.parametrize(
    ("name", "error"),
    [("search.learn.sample", SamplingError), ("model.likelihood.cholesky", NotPositiveDefiniteError)],
    ids=["no start", "no factor"],
)
@pytest.mark.parametrize("warm", [True, False])
def test_without_samples_the_last_hyperparameters_are_used(method, name, error, warm, monkeypatch):
    data = known(pending=1)
    state = suggest(data, None, DOMAIN, method, rng()).state if warm else None
    monkeypatch.setattr(f"cylbo.{name}", raises(error))
    suggestion = suggest(data, state, DOMAIN, method, rng(1))
    assert suggestion.rung == "last hyperparameters"
    assert suggestion.state is state  # the next round begins where this one would have
    assert is_fresh(suggestion.x, data)


@every_method
def test_without_a_factor_the_point_fills_the_space(method, monkeypatch):
    monkeypatch.setattr(suggest_room, "CenteredGP", raises(NotPositiveDefiniteError))
    monkeypatch.setattr(suggest_room, "BlendedGP", raises(NotPositiveDefiniteError))
    monkeypatch.setattr(suggest_room, "GP", raises(NotPositiveDefiniteError))
    data = known(pending=2, failed=1)
    suggestion = suggest(data, None, DOMAIN, method, rng())
    assert suggestion.rung == "space-filling"
    assert bool(DOMAIN.contains(suggestion.x[None])[0])
    assert is_fresh(suggestion.x, data)
    assert np.isfinite(thetas(suggestion.state)).all()  # what was learned is not lost


@every_sampled_method
def test_with_neither_samples_nor_factor_the_point_fills_the_space(method, monkeypatch):
    monkeypatch.setattr(learn_room, "sample", raises(SamplingError))
    monkeypatch.setattr(suggest_room, "CenteredGP", raises(NotPositiveDefiniteError))
    monkeypatch.setattr(suggest_room, "BlendedGP", raises(NotPositiveDefiniteError))
    monkeypatch.setattr(suggest_room, "GP", raises(NotPositiveDefiniteError))
    assert suggest(known(), None, DOMAIN, method, rng()).rung == "space-filling"


def nowhere(posterior, best):
    return Acquired(posterior.mean.sum(0) * np.nan, posterior.mean * np.nan, posterior.mean * np.nan)


@every_method
def test_an_acquisition_that_is_a_number_nowhere_ends_at_the_last_rung(method):
    method = dataclasses.replace(method, acquisition=nowhere)
    assert suggest(known(), None, DOMAIN, method, rng()).rung == "space-filling"


@every_method
def test_a_climb_that_ends_at_known_points_leaves_the_starts(method):
    data = known(pending=1, failed=1)

    def climb(slope, starts, domain, *, learning_rate, max_steps):
        ends = np.resize(seen(data), starts.shape) + 1e-12
        return ends, np.ones(len(ends))

    suggestion = suggest(data, None, DOMAIN, dataclasses.replace(method, climb=climb), rng())
    assert suggestion.rung == "model"
    assert is_fresh(suggestion.x, data)


@pytest.mark.parametrize(("name", "method"), [("sample", "cylinder"), ("fit", "default")])
def test_other_errors_are_not_swallowed(name, method, monkeypatch):
    monkeypatch.setattr(learn_room, name, raises(ZeroDivisionError))
    with pytest.raises(ZeroDivisionError, match="forced"):
        suggest(known(), None, DOMAIN, METHODS[method], rng())


@pytest.mark.parametrize(
    ("method", "name", "error", "origin"),
    [
        ("cylinder", "search.learn.sample", SamplingError, "last hyperparameters"),
        ("cylinder", "model.likelihood.cholesky", NotPositiveDefiniteError, "last hyperparameters"),
        ("cylinder", "search.suggest.CenteredGP", NotPositiveDefiniteError, "space-filling"),
        ("default", "search.suggest.BlendedGP", NotPositiveDefiniteError, "space-filling"),
    ],
)
def test_the_optimizer_survives_a_bad_round_and_says_so(method, name, error, origin, monkeypatch):
    opt = cylbo.Optimizer([(0, 10)] * D, seed=0, method=METHODS[method])
    for _ in range(4):
        trial = opt.ask()
        opt.tell(trial, float(trial.x.sum()))
    with monkeypatch.context() as broken:
        broken.setattr(f"cylbo.{name}", raises(error))
        trial = opt.ask()
    assert trial.origin == origin
    assert np.all((trial.x >= 0) & (trial.x <= 10))
    opt.tell(trial, 1.0)
    assert opt.ask().origin == "model"


@pytest.mark.parametrize("degree", range(1, 10))
@pytest.mark.parametrize("name", ["paper", "cylinder"])
def test_every_angular_degree_from_one_to_nine_works(degree, name):
    method = dataclasses.replace(METHODS[name], angular_degree=degree)
    suggestion = suggest(known(), None, DOMAIN, method, rng())
    assert suggestion.rung == "model"
    # amplitude, noise, two of the warp, lengthscale, P + 1 weights, mean
    assert len(suggestion.state.theta) == 7 + degree


@pytest.mark.parametrize(
    ("name", "size"), [("cylinder", 10), ("paper", 10), ("paper-w", 8), ("paper+b", 10), ("matern", 4)]
)
def test_each_variant_learns_its_own_hyperparameters(name, size):
    assert len(suggest(known(), None, DOMAIN, METHODS[name], rng()).state.theta) == size


def test_the_default_method_learns_the_hyperparameters_of_every_form():
    # lengthscale, noise and compression; a stretch of each coordinate; share and lengthscale of the effects
    state = suggest(known(), None, DOMAIN, METHODS["default"], rng()).state
    assert [len(theta) for theta in state.thetas.values()] == [3, 3 + D, 3 + D + 2]
    assert list(state.thetas) == [Form(), Form(stretched=True), Form(stretched=True, effects=True)]


@pytest.mark.parametrize("form", cylbo.DEFAULT.forms)
@pytest.mark.parametrize("region", ["box", "ball"])
def test_every_form_suggests_a_new_point_wherever_the_centre_is(form, region):
    method = dataclasses.replace(METHODS["default"], forms=(form,))
    space = Box([(-1, 1)] * D, center=np.array([1.0, -0.6, 0.2]), region=region)
    data = known(8, pending=1, failed=1)
    data = Known(
        *(part if part.ndim == 1 else space.to_ball(part) for part in (data.x, data.y, data.pending, data.failed))
    )
    suggestion = suggest(data, None, space.domain, method, rng())
    assert suggestion.rung == "model"
    assert suggestion.state.form == form
    assert bool(space.domain.contains(suggestion.x[None])[0])
    assert is_fresh(suggestion.x, data)


@pytest.mark.parametrize("name", [name for name in METHODS if name != "paper"])
def test_each_variant_suggests_other_points(name):
    def points(method):
        return np.stack([suggest(known(8), None, DOMAIN, method, rng(seed)).x for seed in range(6)])

    assert not np.array_equal(points(METHODS[name]), points(METHODS["paper"]))


def test_the_screen_touches_nothing_but_the_choice_of_starts():
    # With all samples used for the first look, a share below 1 finds the same starts as the letter
    data = known(6)
    letter = dataclasses.replace(CYLINDER, screening_share=1.0)
    screened = dataclasses.replace(CYLINDER, screening_share=0.2, screening_samples=CYLINDER.sweeps)
    a, b = (suggest(data, None, DOMAIN, method, rng()) for method in (letter, screened))
    assert np.allclose(a.x, b.x, atol=1e-12)
    assert np.array_equal(a.state.theta, b.state.theta)


# ---- where the fitted method has little to go by


def in_default_position(*values):
    return known(len(values)).x, np.array(values)


def on_one_ray():
    return np.linspace(0.1, 0.9, 6)[:, None] * np.array([1.0, -0.7, 0.3]), np.arange(6.0)


DIFFICULT = {
    "three of five equal": in_default_position(1.0, 2.0, 1.0, 3.0, 1.0),
    "the three best of five equal": in_default_position(1.0, 1.0, 2.0, 3.0, 1.0),
    "the three worst of five equal": in_default_position(3.0, 1.0, 2.0, 3.0, 3.0),
    "300 decades": in_default_position(*(10.0**k for k in range(-150, 151, 50))),
    "300 decades, down": in_default_position(*(-(10.0**k) for k in range(-150, 151, 50))),
    "300 decades above all the others": in_default_position(1e-150, 2e-150, 3e-150, 4e-150, 1e150),
    "300 decades below all the others": in_default_position(1e-150, 2e-150, 3e-150, 4e-150, -1e150),
    "all on one ray": on_one_ray(),
    "all equal": in_default_position(*[3.0] * 5),
    "two points": in_default_position(1.0, 2.0),
    "two equal values": in_default_position(1.0, 1.0),
    "twice the same point": (np.full((2, D), 0.3), np.array([1.0, 2.0])),
    "the largest float as a penalty": in_default_position(0.1, 0.2, 0.3, 0.25, sys.float_info.max),
    "600 decades": in_default_position(0.0, 1e-300, 2e-300, 3e-300, 1e300),
}


@pytest.mark.parametrize(("x", "y"), DIFFICULT.values(), ids=DIFFICULT)
@pytest.mark.parametrize(("pending", "failed"), [(0, 0), (1, 0), (0, 1), (3, 2)])
@pytest.mark.parametrize("within_box", [True, False])
def test_the_fitted_model_finds_a_new_point_whatever_the_data(x, y, pending, failed, within_box):
    domain = dataclasses.replace(DOMAIN, within_box=within_box)
    others = rng(9).uniform(-1, 1, (pending + failed, D))
    data = Known(x=x, y=y, pending=others[:pending], failed=others[pending:])
    learned = []

    def learn(*arguments):
        learned.append(fitted(*arguments))
        return learned[-1]

    method, state = dataclasses.replace(cylbo.DEFAULT, learn=learn), None
    for seed in range(2):  # from nothing, and from what that left
        with np.errstate(all="ignore"):  # as in `Optimizer`
            suggestion = suggest(data, state, domain, method, rng(seed))
        assert suggestion.rung == "model"
        assert bool(domain.contains(suggestion.x[None])[0])
        assert is_fresh(suggestion.x, data)
        state = suggestion.state
        assert np.isfinite(thetas(state)).all()
        assert np.isfinite([*learned[-1].y, learned[-1].best]).all()


# ---- failures before there is a model


@pytest.mark.parametrize("center", [[0.0, 0.0, 0.0], [0.9, -0.3, 0.0]])
@pytest.mark.parametrize("n_failed", [0, 1, 2, 5, 10, 3000])
def test_with_one_value_and_nothing_but_failures_the_box_is_halved_towards_that_value_each_time(n_failed, center):
    domain = Box([(-1, 1)] * D, center=np.array(center)).domain
    base = np.array([0.6, -0.2, 0.95]) - center
    failed = domain.from_unit_cube(rng(1).random((n_failed, D)))
    data = Known(base[None], np.ones(1), pending=base[None][:0], failed=failed)
    size = max(0.5**n_failed, 1e-3)  # but not until floating point has no room for a new point
    points = np.stack([suggest(data, None, domain, METHODS["default"], rng(seed)).x for seed in range(200)])
    assert all(is_fresh(point, data) for point in points)
    low, high = base + size * (domain.low - base), base + size * (domain.high - base)
    u = (points - low) / (high - low)
    assert u.min() > -1e-9
    assert u.max() < 1.0 + 1e-9
    for column in u.T:  # uniform there
        assert scipy.stats.kstest(column, "uniform").pvalue > 1e-4


@pytest.mark.parametrize("n", [0, 2])
def test_without_a_value_or_with_two_failures_do_not_shrink_the_box(n, monkeypatch):
    monkeypatch.setattr(suggest_room, "BlendedGP", raises(NotPositiveDefiniteError))  # with two there would be a model
    data = known(n, failed=8)
    points = np.stack([suggest(data, None, DOMAIN, METHODS["default"], rng(seed)).x for seed in range(40)])
    assert np.ptp(points, 0).min() > 1.5


# ---- limits and noise in the model


def limited(n=14):
    """Data with failures and a constraint, what was learned of the objective and of its limits."""
    data = known(n, failed=4)
    data = dataclasses.replace(data, constraints=data.x[:, :1] - 0.2, failed_lately=0.1)
    method = dataclasses.replace(METHODS["default"], forms=(Form(stretched=True),))
    learned = fitted(data, DOMAIN, None, method, rng())
    limits, _ = learn_limits(data, {}, DOMAIN, method)
    assert len(limits) == 2
    return suggest_room._Model(data, learned, limits, DOMAIN, method)


def naive_log_improvement(model, x):
    """By quadrature over the quantiles of a normal, in place of the closed form."""
    posterior = model.gp.posterior(x)
    z = scipy.stats.norm.ppf((np.arange(200_000) + 0.5) / 200_000)
    draws = posterior.mean[0][:, None] + np.sqrt(posterior.variance[0])[:, None] * z
    return np.log(np.maximum(model.best - draws, 0.0).mean(-1))


def test_with_limits_the_log_improvement_and_the_log_chance_add_up():
    model = limited()
    model.best = model.gp.posterior(model.known.x).mean.min()  # as far as quantiles see
    x = rng(2).uniform(-1, 1, (6, D))
    expected = naive_log_improvement(model, x) + log_chance(model.limits, x)
    np.testing.assert_allclose(model._values(model.gp)(x), expected, atol=0.02)
    np.testing.assert_allclose(model._slope(x)[0], expected, atol=0.02)
    model.best = np.nan  # nothing is allowed yet
    np.testing.assert_allclose(model._values(model.gp)(x), log_chance(model.limits, x), rtol=1e-12)
    np.testing.assert_allclose(model._slope(x)[0], log_chance(model.limits, x), rtol=1e-12)


@every_sampled_method
def test_with_limits_the_logarithm_of_the_improvement_is_taken_also_where_a_method_takes_none(method):
    data = known(14, failed=4)
    learned = sampled(data, DOMAIN, None, method, rng())
    limits, _ = learn_limits(data, {}, DOMAIN, method)
    model = suggest_room._Model(data, learned, limits, DOMAIN, method)
    x = rng(2).uniform(-1, 1, (6, D))
    posterior = model.gp.posterior(x)
    z = scipy.stats.norm.ppf((np.arange(20_000) + 0.5) / 20_000)
    draws = posterior.mean[..., None] + np.sqrt(posterior.variance)[..., None] * z  # (s, m, draws)
    improvement = np.maximum(learned.best - draws, 0.0).mean((0, -1))
    seen = improvement > 1e-4 * improvement.max()  # as far as quantiles see
    expected = np.log(improvement[seen]) + log_chance(limits, x[seen])
    np.testing.assert_allclose(model._values(model.gp)(x)[seen], expected, atol=0.05)
    assert seen.sum() > 2


@pytest.mark.parametrize("allowed", [True, False])
def test_with_limits_the_slope_is_that_of_the_value(allowed):
    model = limited()
    if not allowed:
        model.best = np.nan
    x, step = rng(3).uniform(-0.9, 0.9, (5, D)), 1e-5
    _, gradient = model._slope(x)
    for k, shift in enumerate(step * np.eye(D)):
        near, far = (model._slope(x + j * shift)[0] - model._slope(x - j * shift)[0] for j in (1, 2))
        np.testing.assert_allclose(gradient[:, k], (8 * near - far) / (12 * step), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("pending", [0, 2])
def test_told_noise_reaches_the_process_and_open_points_have_none(pending):
    data = known(12, pending=pending)
    told = dataclasses.replace(data, noise=np.linspace(0.0, 2.0, 12))
    method = dataclasses.replace(METHODS["default"], forms=(Form(),))
    learned = fitted(told, DOMAIN, None, method, rng())
    gp = suggest_room._Model(told, learned, [], DOMAIN, method).gp
    h = learned.h
    model = brute_force.Blended(1.0, 1.0, 0.0, h.lengthscale[0], h.mean[0], stretch=(1.0,) * D, stabilizer=0.0)
    points = [(None, point) for point in told.x.tolist()]
    K = model.gram(points) + np.diag(h.noise_ratio[0] + learned.noise)
    latent = h.mean[0] + model.cross(points, points) @ np.linalg.solve(K, learned.y - h.mean[0])
    # what is believed of open points is what is predicted there, and changes no other prediction
    np.testing.assert_allclose(gp.posterior(told.x).mean[0], latent, rtol=1e-5, atol=1e-5)
    assert np.abs(latent - learned.y).max() > 0.1
    if pending:
        assert gp.posterior(told.pending).variance.max() < 1.01 * h.noise_ratio[0] * h.amplitude[0]


# ---- evaluated again


def noisy_bowl(n=40, sd=0.3, seed=0, **more):
    x = rng(seed).uniform(-1, 1, (n, D))
    y = (x**2).sum(-1) + sd * rng(seed + 1).standard_normal(n)
    return Known(**{"x": x, "y": y, "pending": x[:0], "failed": x[:0], **more})


def with_its_best_once_more(data, value=None):
    best = int(data.y.argmin())
    value = data.y[best] if value is None else value
    return dataclasses.replace(data, x=np.append(data.x, data.x[[best]], 0), y=np.append(data.y, value))


def test_when_noise_is_suspected_the_best_point_is_evaluated_once_more():
    data, method = noisy_bowl(), METHODS["default"]
    best = int(data.y.argmin())
    found = suggest(data, None, DOMAIN, method, rng())
    assert found.rung == "repeated"
    assert np.array_equal(found.x, data.x[best])
    others = {
        "it gave the same": with_its_best_once_more(data),
        "it was said": dataclasses.replace(data, exact=True),
        "there is no noise": noisy_bowl(sd=0.0),
        "there are few data": noisy_bowl(n=20),
        "it is open": dataclasses.replace(data, pending=data.x[[best]]),
        "it failed the second time": dataclasses.replace(data, failed=data.x[[best]]),
    }
    for why, other in others.items():
        again = suggest(other, None, DOMAIN, method, rng())
        assert again.rung == "model", why
        assert is_fresh(again.x, other), why
    never = dataclasses.replace(method, repeats=False)
    assert suggest(data, None, DOMAIN, never, rng()).rung == "model"
    assert suggest(with_its_best_once_more(data, 9.0), None, DOMAIN, never, rng()).rung == "model"


def test_of_points_that_break_a_constraint_none_is_evaluated_again():
    data = noisy_bowl(constraints=np.where(noisy_bowl().x[:, :1] < 0.0, 1.0, -1.0))
    best = int(np.where(data.x[:, 0] < 0.0, np.inf, data.y).argmin())
    assert best != data.y.argmin()
    assert np.array_equal(suggest(data, None, DOMAIN, METHODS["default"], rng()).x, data.x[best])
    repeated = []
    for seed in range(4):
        noisy = noisy_bowl(80, seed=seed, exact=False)
        noisy = dataclasses.replace(noisy, constraints=np.where(noisy.x[:, :1] < 0.0, 1.0, -1.0))
        found = suggest(noisy, None, DOMAIN, METHODS["default"], rng())
        repeated += [noisy.allowed[noisy.index(found.x)]] if found.rung == "repeated" else []
    assert repeated
    assert all(repeated)


def test_where_there_is_room_for_some_of_the_data_a_point_to_repeat_is_one_of_all():
    data = noisy_bowl(90)
    found = suggest(data, None, DOMAIN, METHODS["default"], rng(), budget=Budget(memory=1e5))
    assert found.info == {} or found.info["points"] < 90
    assert (found.rung, data.index(found.x)) == ("repeated", data.y.argmin())


def process(n=9, *, noise=0.05, seed=3):
    """A process with double loops beside it, and points among which the least mean is sought."""
    model = brute_force.Blended(1.0, 1.7, noise, 0.8, 0.3, stretch=(1.0, 0.7, 1.4), stabilizer=0.0)
    x, y = rng(seed).uniform(-1, 1, (n, D)), 0.1 * rng(seed + 1).standard_normal(n)
    kernel = Blend(np.array(model.stretch))
    gp = BlendedGP(Data.of(x, y, kernel), kernel, brute_force.hyperparameters([model]), stabilizer=0.0)
    points = np.concatenate([rng(seed + 2).uniform(-1, 1, (2, D)), x[np.argsort(y)[:4]]])
    return model, gp, points


@pytest.mark.parametrize("noise", [1e-3, 0.05, 1.0])
@pytest.mark.parametrize("seed", range(2))
def test_what_an_evaluation_is_worth_is_what_it_lowers_the_least_mean_by_on_average(noise, seed):
    """Against values drawn from the prediction, each of them added to the data and all means computed anew."""
    model, gp, points = process(noise=noise, seed=seed)
    x, y = gp.data.x, gp.data.y
    found = replicate.knowledge_gradient(gp, points, noise)

    def means(data_x, data_y, at):
        """(k, d), (k, draws) -> (m, draws)"""
        data, queries = [(None, p) for p in data_x], [(None, p) for p in at]
        return model.mean + model.cross(queries, data) @ np.linalg.solve(model.gram(data), data_y - model.mean)

    before = means(x, y[:, None], points).min()
    draws = 40_000
    worths, errors = [], []
    for i, point in enumerate(points):
        mean, variance = model.posterior([(None, p) for p in x], y, (None, point))
        seen = mean + np.sqrt(variance + noise) * rng(100 + i).standard_normal(draws)
        after = means(np.append(x, [point], 0), np.concatenate([np.tile(y[:, None], draws), [seen]]), points).min(0)
        worths.append(before - after.mean())
        errors.append(after.std() / np.sqrt(draws))
    # 32 quantiles miss a little of the tails
    np.testing.assert_allclose(found, worths, rtol=0.05, atol=5 * max(errors) + 1e-3)
    assert max(worths) > 0.05


def test_a_point_is_evaluated_again_if_that_tells_more_than_a_new_one():
    data = noisy_bowl(sd=0.3, exact=False)
    learned = fitted(data, DOMAIN, None, METHODS["default"], rng())
    model = suggest_room._Model(data, learned, [], DOMAIN, METHODS["default"])
    hopeless = np.ones(D)  # the corner, far above the rest
    again = model.more_telling(hopeless)
    means = model.gp.posterior(data.x).mean[0]
    assert again in np.argsort(means)[:10]
    points = np.concatenate([hopeless[None], data.x[np.argsort(means)[:10]]])
    worth = replicate.knowledge_gradient(model.gp, points, model.observed)
    assert again == np.argsort(means)[worth[1:].argmax()]
    # unless that is open, or failed, or not allowed, or nothing is noisy, or the method never does
    for change in (
        {"pending": data.x[[again]]},
        {"failed": data.x[[again]]},
        {"constraints": np.where(np.arange(40) == again, 1.0, -1.0)[:, None]},
    ):
        other = suggest_room._Model(dataclasses.replace(data, **change), learned, [], DOMAIN, METHODS["default"])
        assert other.more_telling(hopeless) not in (again, None)
    for change in ({"exact": True}, {"constraints": np.ones((40, 1))}):
        other = suggest_room._Model(dataclasses.replace(data, **change), learned, [], DOMAIN, METHODS["default"])
        assert other.more_telling(hopeless) is None
    never = dataclasses.replace(METHODS["default"], repeats=False)
    assert suggest_room._Model(data, learned, [], DOMAIN, never).more_telling(hopeless) is None


def test_a_new_point_that_tells_most_is_taken():
    # one evaluated point in a corner and next to no noise: it says nothing more
    data = noisy_bowl(6, sd=0.0, exact=False)
    assert suggest(data, None, DOMAIN, METHODS["default"], rng()).rung == "model"


# ---- a domain that is partly discrete

FRAME = Frame(cylbo.Space(r=cylbo.Real(0, 1), k=cylbo.Integer(0, 4), c=cylbo.Categorical(["a", "b", "c"])))
LATTICE = FRAME.domain
SNAPPING = {name: METHODS[name] for name in ("default", "cylinder")}
snapping_methods = pytest.mark.parametrize("method", SNAPPING.values(), ids=SNAPPING)


def known_on_lattice(n=20, *, pending=1, failed=1):
    x = LATTICE.from_unit_cube(rng(5).random((n + pending + failed, LATTICE.dim)))
    y = rng(6).standard_normal(n)  # which looks like noise
    return Known(x=x[:n], y=y, pending=x[n : n + pending], failed=x[n + pending :], exact=True)


@every_method
def test_a_suggestion_on_a_lattice_is_a_new_point_of_it(method):
    data = known_on_lattice()
    for seed in range(3):
        suggestion = suggest(data, None, LATTICE, method, rng(seed))
        assert suggestion.rung == "model"
        assert bool(LATTICE.contains(suggestion.x[None])[0])
        np.testing.assert_allclose(FRAME.to_ball(FRAME.to_user(suggestion.x)[None])[0], suggestion.x, atol=1e-14)
        assert is_fresh(suggestion.x, data)


def test_a_lattice_begins_with_uniform_points_whatever_became_of_them():
    method = METHODS["default"]
    for done, pending, failed in ((15, 0, 0), (2, 7, 7), (15, 1, 0)):
        data = known_on_lattice(done, pending=pending, failed=failed)
        assert suggest(data, None, LATTICE, method, rng()).rung == "random"
    for done, pending, failed in ((17, 0, 0), (2, 8, 7), (15, 1, 1)):
        data = known_on_lattice(done, pending=pending, failed=failed)
        assert suggest(data, None, LATTICE, method, rng()).rung == "model"
    one = dataclasses.replace(method, n_first_discrete=1)
    assert suggest(known_on_lattice(2, pending=0, failed=0), None, LATTICE, one, rng()).rung == "model"
    x = rng(1).uniform(-1, 1, (2, D))  # a box needs none of them
    assert suggest(Known(x=x, y=x[:, 0], pending=x[:0], failed=x[:0]), None, DOMAIN, method, rng()).rung == "model"


@snapping_methods
def test_candidates_on_a_lattice_are_new_and_some_differ_from_the_best_in_one_discrete_thing_only(method, monkeypatch):
    data, kept = known_on_lattice(), []
    best_starts = suggest_room.best_starts
    monkeypatch.setattr(
        suggest_room, "best_starts", lambda groups, *a, **k: kept.extend(groups) or best_starts(groups, *a, **k)
    )
    suggest(data, None, LATTICE, method, rng())
    x = np.concatenate(kept)
    assert all(is_fresh(point, data) for point in x)
    assert (x != 0).any(-1).all()
    user = np.stack([FRAME.to_user(point) for point in x])
    np.testing.assert_allclose(FRAME.to_ball(user), x, atol=1e-14)
    best = FRAME.to_user(data.x[data.y.argmin()])
    beside = user[np.isclose(user[:, 0], best[0], rtol=0, atol=1e-12)]
    assert ((beside[:, 1:] != best[1:]).sum(-1) == 1).any()


@every_method
def test_a_climb_that_is_rounded_back_to_a_known_point_leaves_the_starts(method):
    data = known_on_lattice()

    def climb(slope, starts, domain, *, learning_rate, max_steps):
        return np.tile(data.x[0], (len(starts), 1)), np.full(len(starts), 1e300)

    suggestion = suggest(data, None, LATTICE, dataclasses.replace(method, climb=climb), rng())
    assert suggestion.rung == "model"
    assert is_fresh(suggestion.x, data)


@snapping_methods
def test_the_only_point_that_is_left_of_a_lattice_is_suggested(method):
    frame = Frame(cylbo.Space(k=cylbo.Integer(0, 3), c=cylbo.Categorical(["a", "b", "c"])))
    every = frame.to_ball(np.array([[k, c] for k in range(4) for c in range(3)], dtype=float))
    for left in (0, 4, 11):
        x = np.delete(every, left, 0)
        data = Known(x=x, y=np.sin(3.0 * x.sum(-1)), pending=x[:0], failed=x[:0])
        suggestion = suggest(data, None, frame.domain, method, rng())
        np.testing.assert_allclose(suggestion.x, every[left], atol=1e-14)


def sheltered(at):
    return dataclasses.replace(METHODS["default"], learn=lambda *args: dataclasses.replace(fitted(*args), shelter=at))


def test_a_search_that_keeps_close_to_a_point_stays_within_reach_of_it(monkeypatch):
    data, kept = known(12), []
    best_starts = suggest_room.best_starts
    monkeypatch.setattr(
        suggest_room, "best_starts", lambda groups, *a, **k: kept.extend(groups[:-1]) or best_starts(groups, *a, **k)
    )
    for seed in range(5):
        found = suggest(data, None, DOMAIN, sheltered(3), rng(seed))
        assert found.rung == "model"
        assert (np.abs(found.x - data.x[3]) <= suggest_room.REACH + 1e-12).all()
        assert found.info["trust_radius"] == suggest_room.REACH
    away = np.abs(np.concatenate(kept) - data.x[3])
    assert (away <= suggest_room.REACH + 1e-12).all()
    assert np.median(away) < 0.5 * suggest_room.REACH  # about points within reach, not clipped from far away


def test_where_nothing_is_new_near_a_point_the_search_goes_on_elsewhere():
    frame = Frame(cylbo.Space(k=cylbo.Integer(0, 99)))
    x = frame.to_ball(np.arange(30.0, 71.0)[:, None])
    data = Known(x=x, y=rng().standard_normal(41), pending=x[:0], failed=x[:0], exact=False)
    found = suggest(data, None, frame.domain, sheltered(20), rng())
    assert found.rung in ("model", "repeated")
    assert found.rung == "repeated" or abs(found.x[0] - x[20, 0]) > suggest_room.REACH


# ---- a model that disappoints


WIDE = 5  # dimensions
WIDE_DOMAIN = Box([(-1, 1)] * WIDE).domain


def disappointing(d=WIDE, *, unguided=2, surprise=1.0):
    x = rng(3).uniform(-1, 1, (12, d))
    return Known(
        x=x,
        y=np.sin(7.0 * x.sum(-1)),
        pending=x[:0],
        failed=x[:0],
        exact=True,
        surprises=np.full(10, surprise),
        n_unguided=unguided,
    )


def test_once_the_model_disappoints_random_points_are_evaluated_until_there_are_two_for_each_coordinate():
    method = METHODS["default"]
    for unguided in range(2 * WIDE):
        suggestion = suggest(disappointing(unguided=unguided), None, WIDE_DOMAIN, method, rng())
        assert (suggestion.rung, suggestion.info, suggestion.state) == ("covering", {}, None)
    for data, config in (
        (disappointing(unguided=2 * WIDE), method),
        (disappointing(surprise=0.5), method),
        (dataclasses.replace(disappointing(), exact=False), method),  # noise disappoints too
        (disappointing(), dataclasses.replace(method, cover=0)),
    ):
        assert suggest(data, None, WIDE_DOMAIN, config, rng()).rung == "model"
    x = np.stack([suggest(disappointing(), None, WIDE_DOMAIN, method, rng(seed)).x for seed in range(300)])
    assert all(scipy.stats.kstest(column, "uniform", (-1, 2)).pvalue > 1e-3 for column in x.T)


def test_in_few_or_many_dimensions_and_among_choices_no_points_are_spent_on_covering():
    method = METHODS["default"]
    for d, rung in ((4, "model"), (5, "covering"), (50, "covering"), (51, "model")):
        assert suggest(disappointing(d), None, Box([(-1, 1)] * d).domain, method, rng()).rung == rung
    mixed = dataclasses.replace(known_on_lattice(), surprises=np.ones(10))
    assert suggest(mixed, None, LATTICE, method, rng()).rung == "model"


def test_what_must_be_kept_is_learned_in_time_while_the_box_is_covered_too(monkeypatch):
    data = dataclasses.replace(disappointing(), constraints=disappointing().x[:, :1])
    untils = []

    def learned(known, limits, domain, config, until=math.inf):
        untils.append(until)
        return [], {}

    monkeypatch.setattr(suggest_room, "learn_limits", learned)
    for budget in (UNLIMITED, Budget(100.0, None)):
        assert suggest(data, None, WIDE_DOMAIN, METHODS["default"], rng(), budget=budget).rung == "covering"
    assert untils[0] == math.inf > time.perf_counter() + 100.0 > untils[1]


def test_where_evaluations_fail_fewer_of_the_covering_points_lie():
    x = rng(4).uniform(-1, 1, (60, WIDE))
    fails = x[:, 0] > 0.0
    data = dataclasses.replace(disappointing(), x=x[~fails], y=x[~fails, 1], failed=x[fails])
    points = np.stack([suggest(data, None, WIDE_DOMAIN, METHODS["default"], rng(seed)).x for seed in range(60)])
    assert (points[:, 0] > 0.0).mean() < 0.2
    assert scipy.stats.kstest(points[:, 1], "uniform", (-1, 2)).pvalue > 1e-3


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_what_is_predicted_of_a_suggestion_is_a_value_as_it_is_going_to_be_seen(noise):
    """On points of a smooth function: close to its value where it is exact, off by the noise where it is not."""
    x = rng(5).uniform(-1, 1, (60, D))
    y = x @ [1.0, -2.0, 0.5] + noise * rng(6).standard_normal(60)
    data = Known(x=x, y=y, pending=x[:0], failed=x[:0], exact=not noise)
    method = dataclasses.replace(METHODS["default"], repeats=False)  # of a repeat nothing is predicted
    made = suggest(data, None, DOMAIN, method, rng())
    predicted, sd = made.info["predicted"], made.info["predicted_sd"]
    assert abs(predicted - made.x @ [1.0, -2.0, 0.5]) < 0.05 + 3.0 * noise
    assert sd < 0.1 if not noise else 0.2 < sd < 0.6
    # another unit and another zero
    other = suggest(dataclasses.replace(data, y=1e6 * y + 3e6), None, DOMAIN, method, rng())
    np.testing.assert_allclose(other.x, made.x, atol=1e-6)
    np.testing.assert_allclose(
        [other.info["predicted"], other.info["predicted_sd"]], [1e6 * predicted + 3e6, 1e6 * sd], rtol=1e-5
    )


def test_a_method_that_samples_predicts_nothing():
    assert not {"predicted", "predicted_sd"} & set(suggest(known(), None, DOMAIN, CYLINDER, rng()).info)


def rugged(x):
    """Every step is a surprise."""
    return float(np.random.default_rng(zlib.crc32(x.tobytes())).standard_normal() + 30.0 * (np.abs(x) > 1e-3).any())


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_an_optimizer_covers_the_box_once_where_the_model_disappoints_and_never_where_it_does_not(direction):
    sign = 1.0 if direction == "minimize" else -1.0
    for fun, expected in ((rugged, 2 * WIDE - 2), (lambda x: float((x - 0.3) @ (x - 0.3)), 0)):
        opt = cylbo.Optimizer([(-1, 1)] * WIDE, seed=1, method=METHODS["default"], direction=direction, noisy=False)
        for _ in range(25):
            trial = opt.ask()
            opt.tell(trial, sign * fun(trial.x))
        origins = [trial.origin for trial in opt.trials]
        assert origins.count("covering") == expected, origins
        if expected:
            assert origins.index("covering") == 12
