"""Failures and constraints: the chance that an evaluation counts, and a search that goes by it."""

import dataclasses
import math
import struct

import numpy as np
import pytest
import scipy.stats

import brute_force
import cylbo
from cylbo.errors import NotPositiveDefiniteError
from cylbo.model.blended import Blend, BlendedGP, spectrum
from cylbo.model.gp import Data
from cylbo.search import feasibility as limits_room
from cylbo.search.data import Known
from cylbo.search.feasibility import Limit, learn_limits, log_chance, log_chance_slope
from cylbo.search.learn import Fits
from cylbo.search.suggest import suggest
from cylbo.space.box import Box

D = 3
DOMAIN = Box([(-1, 1)] * D).domain
QUICK = {
    "n_sobol": 128, "n_spray": 20, "sweeps": 2, "first_sweeps": 3, "max_steps": 12, "fit_steps": 8, "warm_steps": 3,
}  # fmt: skip
METHODS = {name: dataclasses.replace(cylbo.METHODS[name], **QUICK) for name in ("default", "cylinder", "paper")}
CHEAP = METHODS["default"]
# Where only the bookkeeping matters
LEAST = {"n_sobol": 8, "n_spray": 2, "sweeps": 1, "first_sweeps": 1, "max_steps": 2, "fit_steps": 2, "warm_steps": 1}
TINIES = {name: dataclasses.replace(config, **LEAST, forms=config.forms[:2]) for name, config in METHODS.items()}
TINY = TINIES["default"]
NAN = math.nan

every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
every_tiny_method = pytest.mark.parametrize("method", TINIES.values(), ids=TINIES)


def rng(seed=0):
    return np.random.default_rng(seed)


def known(x, y, **more):
    return Known(**{"x": x, "y": y, "pending": x[:0], "failed": x[:0], **more})


# ---- one limit


def limit(seed, *, share=0.3, caution=1.0, noise=0.2, threshold=0.4):
    """A process that is not learned, as double loops and as ours."""
    r = rng(seed)
    model = brute_force.Blended(
        ball_radius=1.0,
        amplitude=math.exp(r.normal()),
        noise=1e-3,
        lengthscale=1.0,
        mean=r.normal(),
        stretch=tuple(np.exp(r.normal(0.0, 0.5, D)).tolist()),
        share=share,
        stabilizer=0.0,
    )
    x, t = r.uniform(-1.0, 1.0, (8, D)), r.standard_normal(8)
    kernel = Blend(np.array(model.stretch), share, spectrum(0.0, 32)[0] if share else None)
    gp = BlendedGP(Data.of(x, t, kernel), kernel, brute_force.hyperparameters([model]), stabilizer=0.0)

    def truth(query):
        mean, variance = model.posterior([(None, p) for p in x], t, (None, query))
        return caution * scipy.stats.norm.logcdf(threshold, mean, math.sqrt(variance + noise))

    return Limit(gp, threshold, noise, caution), truth


@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("caution", [1.0, 7.5])
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_the_chance_is_that_of_a_normal_to_lie_below_the_threshold(noise, caution, share):
    one, truth = limit(1, share=share, caution=caution, noise=noise)
    queries = rng(2).uniform(-1.0, 1.0, (6, D))
    value = one.log_chance(queries)
    assert value.shape == (6,)
    np.testing.assert_allclose(value, [truth(query) for query in queries], rtol=1e-8, atol=1e-10)
    assert np.ptp(value) > 0.1  # not the same everywhere


@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("threshold", [-30.0, -1.0, 0.4, 5.0])  # from next to impossible to next to certain
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_the_gradient_of_the_chance_matches_differences(noise, threshold, share):
    one, _ = limit(3, share=share, caution=2.5, noise=noise, threshold=threshold)
    queries, step = rng(4).uniform(-1.0, 1.0, (5, D)), 1e-4
    value, gradient = one.slope(queries)
    for k, shift in enumerate(step * np.eye(D)):
        near, far = (one.log_chance(queries + j * shift) - one.log_chance(queries - j * shift) for j in (1, 2))
        expected = (8.0 * near - far) / (12.0 * step)
        np.testing.assert_allclose(gradient[:, k], expected, rtol=1e-6, atol=1e-8 * (1.0 + np.abs(value).max()))


def test_chances_of_several_limits_multiply():
    both = [limit(5)[0], limit(6, caution=3.0)[0]]
    queries = rng(7).uniform(-1.0, 1.0, (4, D))
    value, gradient = log_chance_slope(both, queries)
    alone = [one.slope(queries) for one in both]
    np.testing.assert_allclose(np.exp(value), np.exp(alone[0][0]) * np.exp(alone[1][0]), rtol=1e-12)
    np.testing.assert_allclose(gradient, alone[0][1] + alone[1][1], rtol=1e-12)
    value, gradient = log_chance_slope([], queries)
    assert not value.any()
    assert gradient.shape == (4, D)
    assert not gradient.any()


# ---- what is learned of them


def halves(seed, n, d=D):
    """Points, and how far each lies on the wrong side of a plane through the box."""
    x = rng(seed).uniform(-1.0, 1.0, (n, d))
    normal = rng(seed + 1000).standard_normal(d)
    return x, x @ normal / np.linalg.norm(normal) - 0.1


def split(x, wrong, **more):
    """Points that gave a value, and points that failed."""
    return known(x[~wrong], np.zeros((~wrong).sum()), failed=x[wrong], **more)


@pytest.mark.parametrize("seed", range(4))
def test_a_half_space_of_failures_is_learned(seed):
    x, c = halves(seed, 60)
    unseen, truth = halves(seed, 400)[0][200:], halves(seed, 400)[1][200:] > 0.0  # the rest of the same stream
    [one], _ = learn_limits(split(x, c > 0.0), {}, DOMAIN, cylbo.DEFAULT)
    chance = np.exp(one.log_chance(unseen))
    assert ((chance < 0.5) == truth).mean() > 0.9  # a coin has 0.5
    assert -np.log(np.where(truth, 1.0 - chance, chance)).mean() < 0.3  # log 2 = 0.69 is a coin's
    assert scipy.stats.mannwhitneyu(chance[~truth], chance[truth]).statistic > 0.95 * truth.sum() * (~truth).sum()


@pytest.mark.parametrize("seed", range(3))
def test_constraints_are_learned_better_than_failures_for_they_say_how_far(seed):
    x, c = halves(seed, 30)
    unseen, truth = halves(seed, 400)[0][200:], halves(seed, 400)[1][200:] > 0.0
    [one], _ = learn_limits(known(x, np.zeros(30), constraints=c[:, None]), {}, DOMAIN, cylbo.DEFAULT)
    [other], _ = learn_limits(split(x, c > 0.0), {}, DOMAIN, cylbo.DEFAULT)
    right, less = ((np.exp(each.log_chance(unseen)) < 0.5) == truth for each in (one, other))
    assert right.mean() > 0.97
    assert right.mean() > less.mean()


def naive_threshold(c, border, log_strength):
    """Where `border` comes to lie if c is measured from the least, in the middle gap, and compressed."""
    strength, unit = math.exp(log_strength), np.median(c[c > c.min()] - c.min())
    gap = (border - c.min()) / unit
    return math.log1p(strength * gap) / strength if gap > 0.0 else gap


CONSTRAINTS = {
    "both signs": [-2.0, 3.0, -0.1, 0.5, 1.0, -7.0, 30.0, 0.01],
    "all kept": [-2.0, -3.0, -0.1, -0.5, -1.0, -7.0, -30.0, -0.01],
    "none kept": [2.0, 3.0, 0.1, 0.5, 1.0, 7.0, 30.0, 0.01],
    "none kept by far": [1000.0, 1003.0, 1010.0, 1001.0, 1002.0, 1005.0, 1007.0, 1030.0],
    "one just kept": [0.0, 3.0, 0.1, 0.5, 1.0, 7.0, 30.0, 0.01],
    "mostly 0": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 3.0, -1.0],
    "one not told": [-2.0, 3.0, NAN, 0.5, 1.0, -7.0, 30.0, 0.01],
}


@pytest.mark.parametrize("c", CONSTRAINTS.values(), ids=CONSTRAINTS)
@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_the_threshold_is_where_zero_comes_to_lie(c, unit):
    c = unit * np.array(c)
    x = rng(8).uniform(-1.0, 1.0, (8, D))
    [one], after = learn_limits(known(x, np.zeros(8), constraints=c[:, None]), {}, DOMAIN, CHEAP)
    told = np.isfinite(c)
    x, c = x[told], c[told]
    scale = np.median(np.abs(c))
    tamed = np.sign(c) * (np.log1p(np.abs(c) / scale) if scale else 1.0)
    [fits] = after.values()
    expected = naive_threshold(tamed, 0.0, fits.thetas[fits.form][2])
    assert one.threshold == pytest.approx(expected, rel=1e-9, abs=1e-12)
    t = one.gp.data.y
    assert np.array_equal(one.gp.data.x, x)
    assert (t <= one.threshold + 1e-12).tolist() == (c <= 0.0).tolist()  # the border divides the data as it did before
    assert scipy.stats.spearmanr(t, c).statistic == pytest.approx(1.0)
    assert (one.caution, one.noise) == (1.0, 0.0)


def test_the_threshold_of_failures_lies_halfway():
    x, c = halves(9, 20)
    [one], after = learn_limits(split(x, c > 0.0), {}, DOMAIN, CHEAP)
    fits = after["failure"]
    expected = naive_threshold(np.array([0.0, 1.0]), 0.5, fits.thetas[fits.form][2])
    assert one.threshold == pytest.approx(expected, rel=1e-12)
    assert one.threshold == pytest.approx(0.5 * one.gp.data.y.max(), rel=0.01)  # catches: two values, compressed
    n_done = int((c <= 0.0).sum())
    assert not one.gp.data.y[:n_done].any()
    assert np.ptp(one.gp.data.y[n_done:]) == 0.0
    assert one.gp.data.y[-1] > one.threshold
    # whether it fails next to a failure is not certain
    assert one.noise == pytest.approx(one.gp.h.noise_ratio[0] * one.gp.h.amplitude[0], rel=1e-12)


def test_the_more_often_it_failed_of_late_the_less_a_chance_is_trusted():
    x, c = halves(10, 20)
    queries = rng(11).uniform(-1.0, 1.0, (5, D))

    def log_chance_after(failed_lately):
        [one], _ = learn_limits(split(x, c > 0.0, failed_lately=failed_lately), {}, DOMAIN, CHEAP)
        return one.log_chance(queries)

    trusting, half, careful = (log_chance_after(share) for share in (0.0, 0.5, 1.0))
    np.testing.assert_allclose(half / trusting, 1.0 + 0.5 * limits_room.CAUTION, rtol=1e-9)
    np.testing.assert_allclose(careful / trusting, 1.0 + limits_room.CAUTION, rtol=1e-9)
    assert limits_room.CAUTION > 1.0


def test_there_is_a_limit_for_failures_and_for_each_constraint_that_says_anything():
    x, c = halves(12, 20)
    constraints = np.column_stack([c, np.full(20, -3.0), np.full(20, 2.0), c**2 - 0.1])
    data = known(x, np.zeros(20), constraints=constraints)
    assert learn_limits(known(x, np.zeros(20)), {}, DOMAIN, CHEAP) == ([], {})
    found, after = learn_limits(data, {}, DOMAIN, CHEAP)
    assert len(found) == 2
    assert list(after) == ["constraint 0", "constraint 3"]
    found, after = learn_limits(dataclasses.replace(data, failed=rng(13).random((3, D))), {}, DOMAIN, CHEAP)
    assert len(found) == 3
    assert list(after) == ["failure", "constraint 0", "constraint 3"]


@pytest.mark.parametrize("told", [0, 1])
def test_constraints_of_which_too_few_were_told_say_nothing(told):
    # as when there is no room for the data that they were told with
    x, c = halves(14, 6)
    c[told:] = NAN
    assert learn_limits(known(x, np.arange(6.0), constraints=c[:, None]), {}, DOMAIN, CHEAP) == ([], {})


def test_the_fits_of_every_limit_are_gone_on_with(monkeypatch):
    config = dataclasses.replace(CHEAP, refit_until=2, refit_growth=10.0, warm_growth=10.0)
    x, c = halves(15, 20)
    data = dataclasses.replace(split(x, c > 0.0), constraints=c[c <= 0.0][:, None])
    first, after = learn_limits(data, {}, DOMAIN, config)
    assert all(isinstance(fits, Fits) for fits in after.values())
    monkeypatch.setattr("cylbo.search.learn.fit", None)  # is not called any more
    second, again = learn_limits(data, after, DOMAIN, config)
    queries = rng(16).uniform(-1.0, 1.0, (5, D))
    assert np.array_equal(log_chance(first, queries), log_chance(second, queries))
    assert {name: fits.thetas for name, fits in again.items()} == {name: fits.thetas for name, fits in after.items()}


def test_a_limit_without_a_factor_is_left_out(monkeypatch):
    x, c = halves(17, 12)

    def fail(*arguments, **options):
        raise NotPositiveDefiniteError("forced")

    monkeypatch.setattr(limits_room, "BlendedGP", fail)
    found, after = learn_limits(split(x, c > 0.0), {}, DOMAIN, CHEAP)
    assert found == []
    assert list(after) == ["failure"]


ODD = {
    "the largest float if broken": lambda c: np.where(c > 0.0, 1.7e308, c),
    "the largest float if kept": lambda c: np.where(c < 0.0, -1.7e308, c),
    "nothing but the largest floats": lambda c: 1.7e308 * np.sign(c),
    "nothing but the smallest floats": lambda c: 5e-324 * np.sign(c),
    "600 decades": lambda c: np.sign(c) * 10.0 ** np.linspace(-300.0, 300.0, len(c)),
    "600 decades below all the others": lambda c: np.where(c == c.min(), -1e300, 1e-300 * c),
}


@pytest.mark.parametrize("unit", [1e-300, 1e300, 1e307, 1.7e308])
def test_constraints_keep_their_proportions_in_any_unit(unit):
    x, c = halves(18, 12)
    c = c / np.abs(c).max()
    plain, scaled = (
        learn_limits(known(x, c, constraints=(u * c)[:, None]), {}, DOMAIN, CHEAP)[0][0] for u in (1.0, unit)
    )
    np.testing.assert_allclose(scaled.gp.data.y, plain.gp.data.y, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_constraints_of_any_size_leave_a_chance(odd):
    x, c = halves(18, 12)
    with np.errstate(all="ignore"):  # as in `Optimizer`
        [one], _ = learn_limits(known(x, c, constraints=odd(c)[:, None]), {}, DOMAIN, CHEAP)
        value, gradient = one.slope(x)
    assert np.isfinite(value).all()
    assert np.isfinite(gradient).all()
    assert math.isfinite(one.threshold)


# ---- one round with limits


def feasible_on_the_left(n=12):
    """Points whose first coordinate is too large, and values that pull it to the right."""
    x = rng(19).uniform([-0.4, -1.0, -1.0], 1.0, (n, D))
    return known(x, -x[:, 0], constraints=x[:, :1] + 0.8)


@every_method
@pytest.mark.parametrize("seed", range(2))
def test_while_nothing_is_allowed_the_search_goes_where_it_may_be(method, seed):
    data = feasible_on_the_left()
    assert not data.allowed.any()
    found = suggest(data, None, DOMAIN, method, rng(seed))
    assert found.rung == "model"
    assert found.x[0] < data.x[:, 0].min() - 0.2


@every_method
def test_a_constraint_keeps_the_search_from_where_the_values_are_best(method):
    x = rng(20).uniform(-1.0, 1.0, (25, D))
    data = known(x, 3.0 * x[:, 0])  # best where x[0] is -1
    free = suggest(data, None, DOMAIN, method, rng())
    # ... which is not allowed left of 0
    kept = suggest(dataclasses.replace(data, constraints=-x[:, :1]), None, DOMAIN, method, rng())
    assert free.x[0] < -0.8
    assert -0.15 < kept.x[0] < 0.5
    assert free.limits == {}
    assert list(kept.limits) == ["constraint 0"]


def test_the_chance_that_is_noted_is_that_of_all_limits_whatever_the_caution():
    x, c = halves(24, 20)
    data = known(x, c)
    assert "probability" not in suggest(data, None, DOMAIN, CHEAP, rng()).info
    data = dataclasses.replace(data, constraints=c[:, None], failed=halves(25, 6)[0], failed_lately=0.5)
    found = suggest(data, None, DOMAIN, CHEAP, rng())
    both, _ = learn_limits(data, {}, DOMAIN, CHEAP)
    plain = math.prod(math.exp(one.log_chance(found.x[None])[0] / one.caution) for one in both)
    assert len(both) == 2
    assert both[0].caution > 1.0
    assert found.info["probability"] == pytest.approx(plain, rel=1e-9)


@every_method
def test_failures_teach_the_objective_nothing(method):
    x, c = halves(21, 20)
    data = known(x, c)
    failed = dataclasses.replace(data, failed=rng(22).uniform(-1.0, 1.0, (5, D)))
    with_none, with_some = (suggest(each, None, DOMAIN, method, rng()) for each in (data, failed))
    assert set(with_some.limits) == {"failure"}
    one, other = (vars(each.state) for each in (with_none, with_some))
    for name, part in one.items():
        if name == "thetas":
            assert all(np.array_equal(theta, other[name][form]) for form, theta in part.items())
        else:
            assert np.array_equal(part, other[name])


def test_the_best_value_is_sought_among_allowed_points_and_they_are_sprayed_about(monkeypatch):
    x = rng(23).uniform(-1.0, 1.0, (20, D))
    y = x[:, 0].copy()
    data = known(x, y, constraints=-x[:, :1])
    leader = x[np.where(x[:, 0] >= 0.0, y, np.inf).argmin()]
    bases = []

    def spray(leaders, domain, sd, n, generator):
        bases.append(leaders)
        return domain.project(leaders[0] + sd * generator.standard_normal((n, D)))

    method = dataclasses.replace(CHEAP, spray=spray, n_leaders=1)
    suggest(data, None, DOMAIN, method, rng())
    assert len(bases) == len(method.spray_scales)
    assert all(np.array_equal(base, leader[None]) for base in bases)


# ---- the optimizer

BOX = [(-1.0, 2.0), (10.0, 30.0)]


def make(method=CHEAP, bounds=BOX, **options):
    return cylbo.Optimizer(bounds, seed=0, method=method, **options)


def outcome(x):
    """A value, what it must keep to, and the noise of some; None where nothing comes of it."""
    if x[0] > 1.4:
        return None
    std = {"std": float(0.1 + x[0] ** 2)} if x[0] > 0.0 else {}
    return {"value": float((x[0] - 1.0) ** 2 + 0.01 * x[1]), "constraints": [x[0] - 0.5, 15.0 - x[1]], **std}


def close(opt, trial, told):
    return opt.fail(trial, "diverged") if told is None else opt.tell(trial, **told)


def played(opt, n, fun=outcome):
    for _ in range(n):
        trial = opt.ask()
        close(opt, trial, fun(trial.x))
    return opt


def test_the_best_is_the_best_that_keeps_every_constraint():
    opt = make()
    table = [(5.0, [-1.0, 1.0]), (1.0, [1.0, -1.0]), (7.0, [-1.0, 0.0]), (6.0, [0.0, -1.0]), (0.0, [1e-9, -5.0])]
    best = []
    for value, constraints in table:
        trial = opt.tell(opt.ask(), value, constraints=constraints)
        assert trial.constraints == tuple(constraints)
        best.append(opt.best and opt.best.id)
    assert best == [None, None, 2, 3, 3]
    assert [trial.feasible for trial in opt.trials] == [False, False, True, True, False]


def test_to_maximise_has_constraints_that_are_met_at_zero_and_below_too():
    opt = make(direction="maximize")
    for value, c in ((1.0, -1.0), (3.0, 0.0), (9.0, 1.0), (2.0, -1.0)):
        opt.tell(opt.ask(), value, constraints=[c])
    assert opt.best.value == 3.0


def test_earlier_evaluations_without_constraints_count_as_allowed():
    opt = make(x0=[[0.0, 11.0], [1.0, 12.0]], y0=[4.0, 3.0])
    opt.tell(opt.ask(), 2.0, constraints=[1.0])
    assert opt.best.value == 3.0
    opt.tell(opt.ask(), 1.0, constraints=[-1.0])
    assert opt.best.value == 1.0
    assert opt.ask().origin == "model"


@pytest.mark.parametrize("constraints", [(), [], None, np.empty(0), iter([])])
def test_no_constraints_are_no_constraints(constraints):
    opt = make()
    assert opt.tell(opt.ask(), 1.0, constraints=constraints).constraints == ()
    assert opt.best.id == 0


@pytest.mark.parametrize("constraints", [[1, -0.5], (1.0, -0.5), np.array([1.0, -0.5]), (c for c in (1.0, -0.5))])
def test_constraints_may_come_in_any_row_of_numbers(constraints):
    opt = make()
    told = opt.tell(opt.ask(), 1.0, constraints=constraints)
    assert told.constraints == (1.0, -0.5)
    assert all(type(c) is float for c in told.constraints)


BAD = {
    "too few": ({"constraints": [1.0]}, ValueError, "expected 2 constraints as with trial 0, got 1 for trial"),
    "too many": ({"constraints": [1.0] * 3}, ValueError, "expected 2 constraints .* got 3 .* the same ones"),
    "none": ({}, ValueError, "expected 2 constraints as with trial 0, got 0"),
    "nan": ({"constraints": [1.0, NAN]}, ValueError, r"expected constraints\[1\] to be a finite number, got nan"),
    "infinity": (
        {"constraints": [-math.inf, 1.0]},
        ValueError,
        r"\[0\] .* got -inf .* fail\(trial, reason\)",
    ),
    "a number": ({"constraints": 1.0}, TypeError, "constraints must be a list of numbers, got 1.0"),
    "text": ({"constraints": "12"}, TypeError, "constraints must be a list of numbers, got '12'"),
    "by name": ({"constraints": {"a": 1.0, "b": 2.0}}, TypeError, "constraints must be a list of numbers, got {"),
    "text inside": (
        {"constraints": [1.0, "2"]},
        TypeError,
        r"constraints\[1\] to be one real number, got str",
    ),
    "rows": ({"constraints": np.ones((2, 2))}, TypeError, r"constraints\[0\] .* got ndarray of shape \(2,\)"),
    # 1 is broken and 0 is kept, the reverse of what True and False would be taken for
    "truth": ({"constraints": [True, False]}, TypeError, r"constraints\[0\] to be a number that is .*, got True"),
    "negative std": ({"constraints": [0.0, 0.0], "std": -1e-9}, ValueError, "expected std >= 0, got -1e-09 for trial"),
    "endless std": ({"constraints": [0.0, 0.0], "std": math.inf}, ValueError, "std .* leave it out where it is not"),
    "std as text": ({"constraints": [0.0, 0.0], "std": "1"}, TypeError, "expected std to be one real number, got str"),
    "true std": ({"constraints": [0.0, 0.0], "std": True}, TypeError, "std to be one real number, got bool True"),
    "std each": ({"constraints": [0.0, 0.0], "std": [0.1]}, TypeError, "expected std to be one real number, got list"),
}


def remembered(opt):
    """Everything the next ask depends on, and everything that is shown, to the last bit."""
    trials = [
        (
            t.id,
            t.x.tobytes(),
            struct.pack("2d", t.value, t.std),
            t.status,
            t.origin,
            t.reason,
            t.constraints,
            t.suggestion,
        )
        for t in opt.trials
    ]
    states = {"": opt._memory.state, **opt._memory.limits}
    return trials, {name: None if state is None else exactly(vars(state)) for name, state in states.items()}


def exactly(part):
    if isinstance(part, dict):
        return {key: exactly(each) for key, each in part.items()}
    return part.tobytes() if isinstance(part, np.ndarray) else part


@pytest.mark.parametrize("stored", [False, True])
def test_what_cannot_be_used_is_refused_and_changes_nothing(stored, tmp_path):
    opt, twin = (played(make(TINY, storage=tmp_path / name if stored else None), 4) for name in "ab")
    trial, _ = opt.ask(), twin.ask()
    for what, (told, error, message) in BAD.items():
        for which in (trial, trial.id):
            with pytest.raises(error, match=message):
                opt.tell(which, 1.0, **told)
            assert remembered(opt) == remembered(twin), what
    for each in (opt, twin):  # the trial is still open
        each.tell(4, 1.0, constraints=[0.0, 1.0], std=0.5)
    assert opt.ask().x.tobytes() == twin.ask().x.tobytes()
    if stored:
        opt.close()
        with make(TINY, storage=tmp_path / "a", resume=True) as again:
            assert remembered(again) == remembered(twin)
        twin.close()


def test_constraints_begin_with_the_first_value_or_never():
    opt = make(x0=[[0.0, 11.0]], y0=[4.0])
    opt.fail(opt.ask())
    opt.tell(opt.ask(), 1.0)
    with pytest.raises(ValueError, match="expected 0 constraints as with trial 2, got 1 for trial 3"):
        opt.tell(opt.ask(), 1.0, constraints=[1.0])


@pytest.mark.parametrize(
    ("returned", "error"),
    [
        ({"value": 1.0, "constraints": [1.0, 2.0]}, ValueError),
        ({"value": 1.0, "std": -1.0, "constraints": [1.0]}, ValueError),
        ({"std": 1.0}, TypeError),
        ({"value": 1.0, "constraint": [1.0]}, TypeError),
    ],
)
def test_an_objective_that_tells_what_cannot_be_used_stops_the_run(returned, error):
    outcomes = iter([{"value": 2.0, "constraints": [1.0]}, returned])
    with pytest.raises(
        error, match="the objective must return one real number, or a dict of value, std, constr"
    ) as caught:
        cylbo.minimize(lambda x: next(outcomes), BOX, budget=5, method=CHEAP)
    assert [trial.status for trial in caught.value.result.trials] == ["done", "open"]


def test_minimize_takes_what_tell_takes_and_says_if_nothing_was_allowed():
    def fun(x):
        told = outcome(x)
        if told is None:
            raise ZeroDivisionError
        return told

    result = cylbo.minimize(fun, BOX, budget=10, seed=0, method=TINY, on_error="fail")
    opt = played(make(TINY), 10)
    assert [t.x.tobytes() for t in result.trials] == [t.x.tobytes() for t in opt.trials]
    assert result.x.tobytes() == opt.best.x.tobytes()
    never = cylbo.minimize(lambda x: {"value": 1.0, "constraints": [1.0 + x[0]]}, [(0, 1)], budget=3, method=TINY)
    assert never.success is False
    with pytest.raises(cylbo.NoResultError, match="no evaluation kept every constraint"):
        _ = never.x
    assert math.isnan(never.fun)
    assert "no evaluation kept every constraint" in never.message


def test_a_constraint_that_is_not_a_number_is_a_failed_evaluation():
    result = cylbo.minimize(
        lambda x: {"value": 1.0, "constraints": [NAN if x[0] > 0.4 else 1.0]}, [(0, 1)], budget=4, method=TINY
    )
    assert result.trials[0].status == "failed"
    assert "nan" in result.trials[0].reason


@every_tiny_method
def test_a_round_is_told_of_noise_constraints_and_late_failures(method, monkeypatch):
    rounds = []
    suggest_now = cylbo.run.optimizer.suggest
    monkeypatch.setattr(
        "cylbo.run.optimizer.suggest", lambda data, *rest: rounds.append(data) or suggest_now(data, *rest)
    )
    opt = make(method, x0=[[0.0, 11.0]], y0=[4.0])
    opt.tell(opt.ask(), 1.0, constraints=[0.5, -1.0], std=0.25)
    opt.fail(opt.ask())
    opt.tell(opt.ask(), 2.0, constraints=[-0.5, 1.0])
    opt.ask()
    opt.ask()
    data = rounds[-1]
    assert data.y.tolist() == [4.0, 1.0, 2.0]
    np.testing.assert_array_equal(data.noise, [NAN, 0.25, NAN])
    np.testing.assert_array_equal(data.constraints, [[NAN, NAN], [0.5, -1.0], [-0.5, 1.0]])
    assert (len(data.failed), len(data.pending)) == (1, 1)
    assert data.failed_lately == 1 / 4  # of those that are closed
    assert data.exact is None


def test_failures_of_long_ago_are_forgiven():
    opt = make(TINY)
    statuses = [False] * 7 + [True] * 5 + [False] * 12
    for failed in statuses:
        trial = opt.ask()
        close(opt, trial, None if failed else {"value": float(trial.x[0])})
    assert opt._known().failed_lately == sum(statuses[-20:]) / 20 == 0.25
    for _ in range(10):
        opt.tell(opt.ask(), 1.0)
    assert opt._known().failed_lately == sum(statuses[-10:]) / 20 == 0.0


@pytest.mark.parametrize("name", ["default", "cylinder"])
def test_the_optimum_on_the_border_of_a_constraint_is_found(name):
    # x + y has its least value 1 on the simplex's face where x and y sum to one
    method = dataclasses.replace(METHODS[name], max_steps=30, first_sweeps=20)
    opt = make(method, [(0.0, 1.0)] * 2)
    played(opt, 16, lambda x: {"value": float(x.sum()), "constraints": [1.0 - float(x.sum())]})
    assert 1.0 <= opt.best.value < 1.05


@pytest.mark.parametrize("seed", range(2))
def test_failures_become_rare(seed):
    # three quarters of the box fail, though not where it is best
    opt = cylbo.Optimizer([(0.0, 1.0)] * 2, seed=seed, method=CHEAP, center=[0.9, 0.6])
    played(opt, 24, lambda x: {"value": float(np.abs(x - 0.7).sum())} if min(x) > 0.5 else None)
    assert sum(trial.status == "failed" for trial in opt.trials[-12:]) <= 3  # of a uniform search 9
    assert opt.best.value < 0.1


@every_tiny_method
def test_to_maximise_with_noise_constraints_and_failures_is_to_minimise_the_negative_bit_for_bit(method):
    down, up = make(method), make(method, direction="maximize")
    for _ in range(10):
        trials = [opt.ask() for opt in (down, up)]
        assert trials[0].x.tobytes() == trials[1].x.tobytes()
        told = outcome(trials[0].x)
        close(down, trials[0], told)
        close(up, trials[1], told and {**told, "value": -told["value"]})
    (best, expected), (mirrored, mirrored_expected) = down.recommended(), up.recommended()
    assert (mirrored.id, mirrored.value, mirrored_expected) == (best.id, -best.value, -expected)
    assert {trial.status for trial in up.trials} == {"done", "failed"}
    assert any(np.isfinite(trial.std) for trial in up.trials)


# ---- resumed


@every_tiny_method
@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_run_with_noise_constraints_and_failures_resumed_after_every_step_is_the_run_left_alone(
    tmp_path, method, direction
):
    growth = {"refit_until": 4, "refit_growth": 0.6, "warm_growth": 0.2}  # so that it matters what was left behind
    method, path = dataclasses.replace(method, **growth), tmp_path / "run.db"
    calm = make(method, direction=direction)
    for _ in range(12):
        with make(method, direction=direction, storage=path, resume=True) as opt:
            trial = opt.ask()
        with make(method, direction=direction, storage=path, resume=True) as opt:
            close(opt, trial, outcome(trial.x))
        close(calm, calm.ask(), outcome(calm.trials[-1].x))
        with make(method, direction=direction, storage=path, resume=True) as opt:
            assert remembered(opt) == remembered(calm)
            assert opt.recommended()[1:] == calm.recommended()[1:] or calm.best is None
    assert set(calm._memory.limits) == {"failure", "constraint 0", "constraint 1"}
    assert {trial.status for trial in calm.trials} == {"done", "failed"}
    assert any(np.isfinite(trial.std) for trial in calm.trials)
    result = cylbo.load(path)
    assert [t.constraints for t in result.trials] == [t.constraints for t in calm.trials]
    np.testing.assert_array_equal([t.std for t in result.trials], [t.std for t in calm.trials])


def test_the_next_point_depends_on_what_the_limits_left_behind(tmp_path):
    # else the test above would not see that it was lost
    method = dataclasses.replace(CHEAP, refit_until=4, refit_growth=10.0, warm_growth=10.0)
    differ = []
    for n in (9, 12, 15):
        opt, forgetful = (played(make(method), n) for _ in range(2))
        forgetful._memory = dataclasses.replace(forgetful._memory, limits={})
        differ.append(opt.ask().x.tobytes() != forgetful.ask().x.tobytes())
    assert any(differ)
