"""One round: the ladder from the model down to a uniform point, and the settings a user may turn."""

import dataclasses

import numpy as np
import pytest

import cylbo
from cylbo import suggest as suggest_room
from cylbo.acquisition import Acquired
from cylbo.errors import NotPositiveDefiniteError, SamplingError
from cylbo.space import Space
from cylbo.suggest import Known, suggest

QUICK = {"n_sobol": 256, "sweeps": 2, "first_sweeps": 5, "max_steps": 10}
CHEAP = dataclasses.replace(cylbo.DEFAULT, **QUICK)
METHODS = {name: dataclasses.replace(config, **QUICK) for name, config in cylbo.METHODS.items()}
D = 3
DOMAIN = Space([(-1, 1)] * D).domain

every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


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
    assert np.isfinite(suggestion.chain.theta).all()


@pytest.mark.parametrize("n", [0, 1])
def test_before_two_values_the_point_is_uniform(n):
    data = known(n, pending=3)
    points = [suggest(data, None, DOMAIN, CHEAP, rng(seed)) for seed in range(200)]
    assert {p.rung for p in points} == {"random"}
    assert all(p.chain is None for p in points)
    x = np.stack([p.x for p in points])
    assert np.abs(x).max() <= 1.0
    # Of a uniform law on [-1, 1] the mean is 0, the mean square 1/3; 200 draws know them to 0.041 and 0.021
    assert np.abs(x.mean(0)).max() < 5 * 0.041
    assert np.abs((x**2).mean(0) - 1 / 3).max() < 5 * 0.021


def test_a_round_is_a_function_of_its_arguments():
    data = known(5, pending=1, failed=1)
    before = [t.copy() for t in (data.x, data.y, data.pending, data.failed)]
    first, second = (suggest(data, None, DOMAIN, CHEAP, rng(3)) for _ in range(2))
    assert np.array_equal(first.x, second.x)
    assert np.array_equal(first.chain.theta, second.chain.theta)
    assert not np.array_equal(first.x, suggest(data, None, DOMAIN, CHEAP, rng(4)).x)
    after = (data.x, data.y, data.pending, data.failed)
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


def believed(method, data, at):
    """Mean and variance at a point, amplitude, and the values the model sees; initial hyperparameters."""
    model = suggest_room._Model(data, DOMAIN, method)
    gp = model.condition(model.start(None).theta[None])
    posterior = gp.posterior(at[None])
    return posterior.mean.item(), posterior.variance.item(), gp.h.amplitude.item(), model.y


@every_method
def test_an_open_point_is_believed_to_come_out_as_predicted(method):
    data = known(6)
    x = np.array([0.5, -0.5, 0.4])
    mean, variance, amplitude, _ = believed(method, data, x)
    new_mean, new_variance, _, _ = believed(method, dataclasses.replace(data, pending=x[None]), x)
    assert new_mean == pytest.approx(mean, abs=1e-6)
    assert new_variance < 2e-3 * amplitude < 0.1 * variance  # the noise is a thousandth of the amplitude


@every_method
def test_a_failed_point_is_believed_to_be_no_better_than_the_middle(method):
    data = known(6)
    best, worst = (data.x[i] + 0.05 for i in (data.y.argmin(), data.y.argmax()))
    hopeful, _, _, y = believed(method, data, best)
    assert hopeful < np.median(y)
    sobered, _, _, _ = believed(method, dataclasses.replace(data, failed=best[None]), best)
    assert sobered > hopeful + 0.3 * (np.median(y) - hopeful)
    bad, _, _, _ = believed(method, data, worst)
    assert bad > np.median(y)
    still_bad, _, _, _ = believed(method, dataclasses.replace(data, failed=worst[None]), worst)
    assert still_bad == pytest.approx(bad, abs=1e-6)


def test_the_chain_is_handed_on():
    data = known()
    first = suggest(data, None, DOMAIN, CHEAP, rng())
    theta = first.chain.theta.copy()
    second = suggest(data, first.chain, DOMAIN, CHEAP, rng(1))
    assert not np.array_equal(second.chain.theta, theta)
    assert np.array_equal(first.chain.theta, theta)  # not modified in place


@every_method
@pytest.mark.parametrize("error", [SamplingError, NotPositiveDefiniteError])
@pytest.mark.parametrize("warm", [True, False])
def test_without_samples_the_last_hyperparameters_are_used(method, error, warm, monkeypatch):
    data = known(pending=1)
    chain = suggest(data, None, DOMAIN, method, rng()).chain if warm else None
    monkeypatch.setattr(suggest_room, "sample", raises(error))
    suggestion = suggest(data, chain, DOMAIN, method, rng(1))
    assert suggestion.rung == "last hyperparameters"
    assert suggestion.chain is chain  # the next round begins where this one would have
    assert is_fresh(suggestion.x, data)


@pytest.mark.parametrize("name", ["default", "matern"])
def test_without_a_factor_the_point_fills_the_space(name, monkeypatch):
    monkeypatch.setattr(suggest_room, "CenteredGP", raises(NotPositiveDefiniteError))
    monkeypatch.setattr(suggest_room, "GP", raises(NotPositiveDefiniteError))
    data = known(pending=2, failed=1)
    suggestion = suggest(data, None, DOMAIN, METHODS[name], rng())
    assert suggestion.rung == "space-filling"
    assert bool(DOMAIN.contains(suggestion.x[None])[0])
    assert is_fresh(suggestion.x, data)


def test_with_neither_samples_nor_factor_the_point_fills_the_space(monkeypatch):
    monkeypatch.setattr(suggest_room, "sample", raises(SamplingError))
    monkeypatch.setattr(suggest_room, "CenteredGP", raises(NotPositiveDefiniteError))
    assert suggest(known(), None, DOMAIN, CHEAP, rng()).rung == "space-filling"


def nowhere(posterior, best):
    return Acquired(posterior.mean.sum(0) * np.nan, posterior.mean * np.nan, posterior.mean * np.nan)


def test_an_acquisition_that_is_a_number_nowhere_ends_at_the_last_rung():
    method = dataclasses.replace(CHEAP, acquisition=nowhere)
    assert suggest(known(), None, DOMAIN, method, rng()).rung == "space-filling"


def test_a_climb_that_ends_on_known_points_ends_at_the_last_rung():
    data = known(pending=1, failed=1)

    def climb(slope, starts, domain, *, learning_rate, max_steps):
        ends = seen(data) + 1e-12
        return ends, np.ones(len(ends))

    suggestion = suggest(data, None, DOMAIN, dataclasses.replace(CHEAP, climb=climb), rng())
    assert suggestion.rung == "space-filling"
    assert is_fresh(suggestion.x, data)


def test_other_errors_are_not_swallowed(monkeypatch):
    monkeypatch.setattr(suggest_room, "sample", raises(ZeroDivisionError))
    with pytest.raises(ZeroDivisionError, match="forced"):
        suggest(known(), None, DOMAIN, CHEAP, rng())


@pytest.mark.parametrize(
    ("name", "error", "origin"),
    [
        ("sample", SamplingError, "last hyperparameters"),
        ("sample", NotPositiveDefiniteError, "last hyperparameters"),
        ("CenteredGP", NotPositiveDefiniteError, "space-filling"),
    ],
)
def test_the_optimizer_survives_a_bad_round_and_says_so(name, error, origin, monkeypatch):
    opt = cylbo.Optimizer([(0, 10)] * D, seed=0, method=CHEAP)
    for _ in range(4):
        trial = opt.ask()
        opt.tell(trial, float(trial.x.sum()))
    with monkeypatch.context() as broken:
        broken.setattr(suggest_room, name, raises(error))
        trial = opt.ask()
    assert trial.origin == origin
    assert np.all((trial.x >= 0) & (trial.x <= 10))
    opt.tell(trial, 1.0)
    assert opt.ask().origin == "model"


@pytest.mark.parametrize("degree", range(1, 10))
@pytest.mark.parametrize("preset", [cylbo.PAPER, cylbo.DEFAULT], ids=lambda c: c.name)
def test_every_angular_degree_from_one_to_nine_works(degree, preset):
    method = dataclasses.replace(dataclasses.replace(preset, angular_degree=degree), **QUICK)
    suggestion = suggest(known(), None, DOMAIN, method, rng())
    assert suggestion.rung == "model"
    # amplitude, noise, two of the warp, lengthscale, P + 1 weights, mean
    assert len(suggestion.chain.theta) == 7 + degree


@pytest.mark.parametrize(("name", "size"), [("paper", 10), ("paper-w", 8), ("paper+b", 10), ("matern", 4)])
def test_each_variant_samples_its_own_hyperparameters(name, size):
    assert len(suggest(known(), None, DOMAIN, METHODS[name], rng()).chain.theta) == size


@pytest.mark.parametrize("name", ["paper-w", "paper+b", "matern"])
def test_each_variant_suggests_other_points(name):
    def points(method):
        return np.stack([suggest(known(8), None, DOMAIN, method, rng(seed)).x for seed in range(6)])

    assert not np.array_equal(points(METHODS[name]), points(METHODS["paper"]))


def test_the_screen_touches_nothing_but_the_choice_of_starts():
    # With all samples used for the first look, a share below 1 finds the same starts as the letter
    data = known(6)
    letter = dataclasses.replace(CHEAP, screening_share=1.0)
    screened = dataclasses.replace(CHEAP, screening_share=0.2, screening_samples=CHEAP.sweeps)
    a, b = (suggest(data, None, DOMAIN, method, rng()) for method in (letter, screened))
    assert np.allclose(a.x, b.x, atol=1e-12)
    assert np.array_equal(a.chain.theta, b.chain.theta)
