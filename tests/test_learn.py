"""Where hyperparameters come from: when a fit begins anew, what the sampler is given, what is left when it fails."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest

import brute_force
import cylbo.learn
from cylbo.config import DEFAULT, METHODS, PAPER
from cylbo.errors import SamplingError
from cylbo.fit import Evidence, Fitted
from cylbo.geometry import Domain
from cylbo.hyper import Hyperparameters, Layout
from cylbo.learn import fitted, sampled
from cylbo.slice_sampler import Chain, sample

SHORT = {"first_sweeps": 3, "sweeps": 4}
SAMPLERS = [dataclasses.replace(METHODS[name], **SHORT) for name in ("paper", "cylinder", "paper-w", "matern")]


def box(d):
    return Domain(-np.ones(d), np.ones(d), math.sqrt(d))


def data(seed=0, n=6, d=3):
    """The centre and random points, with skewed values."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (n, d))
    x[0] = 0.0
    return x, 5.0 + 2.0 * np.exp(rng.standard_normal(n))


def learned(learn, config, state=None, *, seed=0, **which):
    x, y = data(**which)
    return learn(x, y, box(x.shape[1]), state, config, np.random.default_rng(seed))


def values_of(found):
    """Every number of what was learned."""
    h, state = found.h, found.state
    parts = [h.amplitude, h.noise_ratio, h.lengthscale, h.mean, found.y, [found.best]]
    parts += [] if h.warp is None else h.warp
    parts += [] if h.weights is None else [h.weights.ravel()]
    parts += [state.theta] if state is not None else []
    parts += [state.widths] if isinstance(state, Chain) else []
    return np.concatenate(parts)


class Calls:
    """Takes the place of a function, writes down its arguments and then calls it."""

    def __init__(self, monkeypatch, name):
        self.function, self.arguments = getattr(cylbo.learn, name), []
        monkeypatch.setattr(cylbo.learn, name, self)

    def __call__(self, *arguments, **options):
        self.arguments.append(arguments)
        return self.function(*arguments, **options)


# --- by gradient ---------------------------------------------------------------------------------------------------


def some_fit(theta=(0.1, -7.0, -0.5)):
    one = np.ones(1)
    return Fitted(np.array(theta), Hyperparameters(one, one, one, one), np.zeros(2), 0.0)


def test_the_first_fit_begins_from_little_and_from_much_noise(monkeypatch):
    calls = Calls(monkeypatch, "fit")
    found = learned(fitted, DEFAULT, n=40)
    [(evidence, starts, steps)] = calls.arguments
    assert steps == DEFAULT.fit_steps
    nuggets = np.exp([start[1] for start in starts])
    assert nuggets.min() < 1e-4
    assert nuggets.max() > 1e-2
    assert all(((evidence.lower <= start) & (start <= evidence.upper)).all() for start in starts)
    assert isinstance(found.state, Fitted)


@pytest.mark.parametrize("batch", [1, 4, 7])
@pytest.mark.parametrize("growth", [0.125, 0.25, 1.0])  # exact in binary, so that the rule below is too
def test_a_fit_begins_anew_while_data_are_few_and_whenever_they_have_grown(monkeypatch, growth, batch):
    config = dataclasses.replace(DEFAULT, refit_until=20, refit_growth=growth)
    state = fit_found = some_fit()
    calls = Calls(monkeypatch, "fit")
    calls.function = lambda evidence, starts, steps: fit_found  # only the arguments are of interest
    last_anew = 0
    for n in range(2, 140, batch):
        state = learned(fitted, config, state, n=n, d=2).state
        _, starts, steps = calls.arguments[-1]
        anew = n < 20 or n >= (1 + Fraction(growth)) * last_anew
        last_anew = n if anew else last_anew
        assert state.anew_at == last_anew
        assert steps == (config.fit_steps if anew else config.warm_steps), n
        assert (len(starts) > 1) == anew, n
        assert any(np.array_equal(start, state.theta) for start in starts), n  # the last fit is always tried


def test_a_warm_fit_costs_no_more_than_its_steps_and_is_no_worse_than_the_last(monkeypatch):
    config = dataclasses.replace(DEFAULT, refit_until=2, refit_growth=100.0)
    first = learned(fitted, config, n=30)
    calls = Calls(monkeypatch, "fit")
    second = learned(fitted, config, first.state, n=31)
    [(evidence, starts, _)] = calls.arguments
    assert [start.tolist() for start in starts] == [first.state.theta.tolist()]
    assert evidence.evaluations <= 2 * config.warm_steps + 21  # and the end of one line search
    x, y = data(n=31)
    fresh = Evidence(x, y, config.beliefs)
    assert fresh(second.state.theta)[0] <= fresh(first.state.theta)[0]


def test_a_fit_hands_on_what_it_found():
    found = learned(fitted, DEFAULT, n=12)
    assert not found.failed
    assert len(found.h) == 1
    assert found.h is found.state.h
    assert np.array_equal(found.y, found.state.t)
    assert found.best == found.state.best
    assert found.h.lengthscale[0] == pytest.approx(math.exp(found.state.theta[0]))
    _, y = data(n=12)
    strength = math.exp(found.state.theta[2])
    gap = (y - y.min()) / np.median(y[y > y.min()] - y.min())
    np.testing.assert_allclose(found.y, np.log(1.0 + strength * gap) / strength, rtol=1e-12)


def test_the_beliefs_of_the_configuration_reach_the_fit():
    beliefs = dataclasses.replace(DEFAULT.beliefs, log_lengthscale=(2.0, 1e-3))
    found = learned(fitted, dataclasses.replace(DEFAULT, beliefs=beliefs), n=12, d=3)
    assert math.log(found.h.lengthscale[0]) == pytest.approx(2.0 + 0.5 * math.log(3.0), abs=0.1)


def test_a_fit_does_not_go_on_from_a_chain():
    chain = Chain(np.zeros(10), np.ones(10))
    config = dataclasses.replace(DEFAULT, refit_until=2, refit_growth=100.0)  # with a fit it would go on from there
    assert np.array_equal(values_of(learned(fitted, config, chain)), values_of(learned(fitted, config)))


def test_equal_values_can_be_fitted_round_after_round():
    x, _ = data(n=5)
    state = None
    for _ in range(2):
        found = fitted(x, np.full(5, 3.0), box(3), state, DEFAULT, np.random.default_rng(0))
        state = found.state
        assert np.isfinite(values_of(found)).all()
        assert not found.y.any()


# --- by slice sampling ---------------------------------------------------------------------------------------------


def naive_samples(config, x, y, chain, seed):
    """The sampler run on a naive log density. -> (sweeps, p), the new chain, the layout."""
    domain = box(x.shape[1])
    cylindrical = config.name != "matern"
    if config.name == "cylinder":
        y = (y - y.mean()) / y.std(ddof=1)
    layout = Layout(
        config.priors,
        domain.radius,
        (y.min(), y.max()),
        angular_degree=3 if cylindrical else None,
        warped=config.name in ("paper", "cylinder"),
    )

    def log_density(theta, _floor):
        log_prior = layout.log_prior(theta)
        if log_prior == -math.inf:
            return -math.inf
        model = brute_force.model_of(theta, layout.names, domain.radius, config.stabilizer)
        if not cylindrical:
            return log_prior + model.log_likelihood([(None, point) for point in x], y)
        return log_prior + brute_force.averaged_log_likelihood(model, x[1:], y[1:], y[:1])

    rng = np.random.default_rng(seed)
    bounds = {"lower": layout.lower, "upper": layout.upper, "tune_widths": config.tune_widths}
    if chain is None:
        chain = Chain(layout.initial(y), np.ones(len(layout)))
        _, chain = sample(log_density, chain, config.first_sweeps, rng, **bounds)
    else:
        chain = Chain(np.clip(chain.theta, layout.lower, layout.upper), chain.widths)
    return *sample(log_density, chain, config.sweeps, rng, **bounds), layout


@pytest.mark.parametrize(
    "config",
    # a small change of the density seldom changes a sample, so once with a stabiliser that matters
    [*SAMPLERS, dataclasses.replace(SAMPLERS[3], stabilizer=1.0)],
    ids=lambda config: f"{config.name}, {config.stabilizer:g}",
)
def test_samples_are_those_of_a_naive_density(config):
    # catches: the wrong values, priors, stabiliser or state handed to the sampler; burning in every round
    chain = None
    for seed in (1, 2):
        x, y = data(seed)
        thetas, expected_chain, layout = naive_samples(config, x, y, chain, seed)
        found = sampled(x, y, box(3), chain, config, np.random.default_rng(seed))
        expected = layout.unpack(thetas)
        assert not found.failed
        assert len(found.h) == config.sweeps
        for name in ("amplitude", "noise_ratio", "lengthscale", "mean"):
            np.testing.assert_allclose(getattr(found.h, name), getattr(expected, name), rtol=1e-6)
        np.testing.assert_allclose(found.state.theta, expected_chain.theta, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(found.state.widths, expected_chain.widths, rtol=1e-6)
        chain = found.state


def test_sampling_hands_on_the_values_as_the_model_sees_them():
    _, y = data()
    raw, standardized = learned(sampled, SAMPLERS[0]), learned(sampled, SAMPLERS[1])
    np.testing.assert_allclose(raw.y, y, rtol=1e-14)
    np.testing.assert_allclose(standardized.y, (y - y.mean()) / y.std(ddof=1), rtol=1e-12)
    for found in (raw, standardized):
        assert found.best == found.y.min()


def without_density(*_arguments, **_options):
    raise SamplingError("no density")


def test_a_sampler_that_fails_leaves_the_last_hyperparameters_and_the_state(monkeypatch):
    first = learned(sampled, SAMPLERS[0])
    chain = first.state
    monkeypatch.setattr(cylbo.learn, "sample", without_density)
    found = learned(sampled, SAMPLERS[0], chain)
    assert found.failed
    assert found.state is chain
    assert len(found.h) == 1
    for name in ("amplitude", "noise_ratio", "lengthscale", "mean"):  # the last sample was the last state
        np.testing.assert_allclose(getattr(found.h, name), getattr(first.h, name)[-1:], rtol=1e-12)
    np.testing.assert_allclose(found.y, first.y)
    assert found.best == first.best


@pytest.mark.parametrize("successes", [0, 1])
def test_a_sampler_that_fails_at_first_leaves_the_initial_hyperparameters(monkeypatch, successes):
    # in the burn-in, or after it
    left = [sample] * successes
    monkeypatch.setattr(
        cylbo.learn, "sample", lambda *args, **options: (left.pop() if left else without_density)(*args, **options)
    )
    found = learned(sampled, SAMPLERS[0])
    _, y = data()
    assert found.failed
    assert found.state is None
    assert found.h.amplitude.tolist() == pytest.approx([y.std(ddof=1)])  # as the authors have it, see `hyper.py`
    assert found.h.mean.tolist() == pytest.approx([y.mean()])


def test_the_mean_of_the_last_round_is_brought_into_the_range_of_the_new_values(monkeypatch):
    chain = learned(sampled, SAMPLERS[0]).state
    outside = Chain(np.append(chain.theta[:-1], 1e6), chain.widths)
    monkeypatch.setattr(cylbo.learn, "sample", without_density)
    found = learned(sampled, SAMPLERS[0], outside)
    assert found.h.mean.tolist() == [data()[1].max()]
    assert found.state is outside


def test_sampling_does_not_go_on_from_a_fit():
    config = SAMPLERS[0]
    assert np.array_equal(values_of(learned(sampled, config, some_fit())), values_of(learned(sampled, config)))


# --- both ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", [DEFAULT, *SAMPLERS], ids=lambda config: config.name)
def test_the_same_arguments_give_the_same_result_and_are_not_modified(config):
    first = config.learn(*data(n=34), box(3), None, config, np.random.default_rng(5))
    x, y = data(n=35)
    domain, state = box(3), first.state
    arrays = [x, y, domain.low, domain.high, state.theta]
    arrays += [state.widths] if isinstance(state, Chain) else [state.t, state.h.lengthscale]
    before = [array.copy() for array in arrays]
    found, again = (config.learn(x, y, domain, state, config, np.random.default_rng(6)) for _ in range(2))
    assert np.array_equal(values_of(found), values_of(again))
    for array, copy in zip(arrays, before, strict=True):
        assert np.array_equal(array, copy)


def test_another_seed_gives_other_samples_but_the_same_fit():
    first, second = (values_of(learned(sampled, SAMPLERS[0], seed=seed)) for seed in (0, 1))
    assert not np.array_equal(first, second)
    first, second = (values_of(learned(fitted, DEFAULT, seed=seed)) for seed in (0, 1))
    assert np.array_equal(first, second)


@pytest.mark.parametrize("config", [DEFAULT, SAMPLERS[3], dataclasses.replace(PAPER, **SHORT)], ids=lambda c: c.name)
def test_two_values_are_enough(config):
    assert np.isfinite(values_of(learned(config.learn, config, n=2))).all()
