"""Where hyperparameters come from: when a fit begins anew, what the sampler is given, what is left when it fails."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest

import brute_force
import cylbo.search.learn
from cylbo.errors import SamplingError
from cylbo.methods import DEFAULT, METHODS, PAPER
from cylbo.model.beliefs import Form
from cylbo.model.blended import Blend
from cylbo.model.evidence import Evidence
from cylbo.model.fit import Fitted, at
from cylbo.model.hyperparameters import Hyperparameters, Layout
from cylbo.numerics.slice_sampler import Chain, sample
from cylbo.search.data import Known
from cylbo.search.learn import Fits, expected, fitted, sampled
from cylbo.space.domain import Domain, Lattice

SHORT = {"first_sweeps": 3, "sweeps": 4}
PLAIN, STRETCHED, FULL = Form(), Form(stretched=True), Form(stretched=True, effects=True)
SAMPLERS = [dataclasses.replace(METHODS[name], **SHORT) for name in ("paper", "cylinder", "paper-w", "matern")]


def box(d):
    return Domain(-np.ones(d), np.ones(d), math.sqrt(d))


def data(seed=0, n=6, d=3):
    """The centre and random points, with skewed values."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (n, d))
    x[0] = 0.0
    return x, 5.0 + 2.0 * np.exp(rng.standard_normal(n))


def known(x, y, **more):
    return Known(x, y, pending=x[:0], failed=x[:0], **more)


def learned(learn, config, state=None, *, seed=0, **which):
    x, y = data(**which)
    return learn(known(x, y), box(x.shape[1]), state, config, np.random.default_rng(seed))


def values_of(found):
    """Every number of what was learned."""
    h, state = found.h, found.state
    parts = [h.amplitude, h.noise_ratio, h.lengthscale, h.mean, found.y, [found.best]]
    parts += [] if h.warp is None else h.warp
    parts += [] if h.weights is None else [h.weights.ravel()]
    parts += [] if found.kernel is None else [found.kernel.stretch, [found.kernel.share]]
    parts += [state.theta, state.widths] if isinstance(state, Chain) else []
    if isinstance(state, Fits):
        parts += [*state.thetas.values(), [state.chosen_at, state.fitted_at]]
    return np.concatenate(parts)


class Calls:
    """Takes the place of a function, writes down its arguments and then calls it."""

    def __init__(self, monkeypatch, name):
        self.function, self.arguments = getattr(cylbo.search.learn, name), []
        monkeypatch.setattr(cylbo.search.learn, name, self)

    def __call__(self, *arguments, **options):
        self.arguments.append(arguments)
        return self.function(*arguments, **options)


# --- by gradient ---------------------------------------------------------------------------------------------------


class Recorder:
    """Takes the place of `fit` and `at`: writes down what is asked for, and finds whatever it likes."""

    def __init__(self, monkeypatch, score=lambda n, form: 0.0):
        self.score, self.calls, self.found = score, [], 0
        monkeypatch.setattr(cylbo.search.learn, "fit", self.fit)
        monkeypatch.setattr(cylbo.search.learn, "at", self.at)

    def fit(self, evidence, starts, steps):
        self.calls.append((evidence, [start.copy() for start in starts], steps))
        self.found += 1
        return self.at(evidence, np.full(len(evidence.prior_mean), float(self.found)))  # no two alike

    def at(self, evidence, theta):
        n, one = len(evidence.gaps), np.ones(1)
        h = Hyperparameters(one, one, one, one)
        self.told = theta.copy()
        return Fitted(
            theta, Blend(np.ones(evidence.x.shape[1])), h, *np.zeros((3, n)), self.score(n, evidence.form), None
        )

    @property
    def forms(self):
        return [evidence.form for evidence, _, _ in self.calls]


def some_fits(**options):
    thetas = {PLAIN: np.array([0.1, -7.0, -0.5])}
    return Fits(**{"thetas": thetas, "form": PLAIN, "chosen_at": 2, "fitted_at": 2, **options})


def test_the_first_fit_of_every_form_begins_from_little_and_from_much_noise(monkeypatch):
    calls = Calls(monkeypatch, "fit")
    found = learned(fitted, DEFAULT, n=40)
    assert [evidence.form for evidence, _, _ in calls.arguments] == [PLAIN, STRETCHED, FULL]
    for evidence, starts, steps in calls.arguments:
        assert steps == DEFAULT.fit_steps
        nuggets = np.exp([start[1] for start in starts])
        assert nuggets.min() < 1e-4
        assert nuggets.max() > 1e-2
        assert all(((evidence.lower <= start) & (start <= evidence.upper)).all() for start in starts)
    assert isinstance(found.state, Fits)
    assert set(found.state.thetas) == {PLAIN, STRETCHED, FULL}
    assert (found.state.chosen_at, found.state.fitted_at) == (40, 40)


@pytest.mark.parametrize("batch", [1, 4, 7])
@pytest.mark.parametrize("growth", [0.125, 0.25, 1.0])  # exact in binary, so that the rule below is too
@pytest.mark.parametrize("warm_growth", [0.015625, 0.0625, 2.0])
def test_all_forms_are_fitted_anew_when_data_are_few_or_have_grown_and_the_chosen_one_between(
    monkeypatch, growth, warm_growth, batch
):
    config = dataclasses.replace(DEFAULT, refit_until=20, refit_growth=growth, warm_growth=warm_growth)
    recorder = Recorder(monkeypatch, score=lambda n, form: math.sin(n * (1 + config.forms.index(form))))
    state, chosen_at, fitted_at, chosen = None, 0, 0, None
    rounds = {"all": 0, "one": 0, "none": 0}
    for n in range(2, 140, batch):
        last, before = state, {} if state is None else {form: theta.copy() for form, theta in state.thetas.items()}
        recorder.calls.clear()
        state = learned(fitted, config, last, n=n, d=2).state
        if n < 20 or n >= (1 + Fraction(growth)) * chosen_at:
            rounds["all"] += 1
            assert recorder.forms == [PLAIN, STRETCHED, FULL], n
            for evidence, starts, steps in recorder.calls:
                assert steps == config.fit_steps
                assert len(starts) == (3 if last is None else 4)
                # the last fit of the form is always tried
                assert last is None or any(np.array_equal(start, before[evidence.form]) for start in starts)
            chosen, chosen_at, fitted_at = max(config.forms, key=lambda form: recorder.score(n, form)), n, n
        elif n >= (1 + Fraction(warm_growth)) * fitted_at:
            rounds["one"] += 1
            [(evidence, [start], steps)] = recorder.calls
            assert (evidence.form, steps) == (chosen, config.warm_steps), n
            assert np.array_equal(start, before[chosen])
            fitted_at = n
        else:
            rounds["none"] += 1
            assert recorder.calls == [], n
            assert np.array_equal(state.thetas[chosen], before[chosen])
        assert (state.form, state.chosen_at, state.fitted_at) == (chosen, chosen_at, fitted_at), n
        assert set(state.thetas) == {PLAIN, STRETCHED, FULL}
        assert np.array_equal(recorder.told, state.thetas[chosen]), n  # what the model is made from
        if n != chosen_at:
            others = {PLAIN, STRETCHED, FULL} - {chosen}
            assert all(np.array_equal(state.thetas[form], before[form]) for form in others)
        assert last is None or all(np.array_equal(last.thetas[form], before[form]) for form in before)
    assert rounds["all"] > 0
    assert (rounds["one"] > 0) == (warm_growth < growth)  # with more than one round in between
    assert rounds["none"] > 0 or warm_growth < 0.06


@pytest.mark.parametrize("d", [7, 8])
def test_one_coordinate_is_told_from_another_only_by_half_as_many_values(monkeypatch, d):
    recorder = Recorder(monkeypatch)
    config = dataclasses.replace(DEFAULT, refit_until=10)
    state = None
    for n in range(2, 7):
        recorder.calls.clear()
        state = learned(fitted, config, state, n=n, d=d).state
        assert recorder.forms == ([PLAIN] if n < 4 else [PLAIN, STRETCHED, FULL])
        assert set(state.thetas) == set(recorder.forms)


def test_without_the_plain_form_few_values_are_fitted_too():
    config = dataclasses.replace(DEFAULT, forms=(STRETCHED, FULL))
    found = learned(fitted, config, n=3, d=8)
    assert found.state.form == PLAIN
    assert np.isfinite(values_of(found)).all()
    assert set(learned(fitted, config, found.state, n=4, d=8).state.thetas) == {STRETCHED, FULL}


def test_forms_that_were_not_yet_tried_wait_for_the_next_fit_of_all(monkeypatch):
    recorder = Recorder(monkeypatch)
    config = dataclasses.replace(DEFAULT, refit_until=2, refit_growth=1.0)
    state = learned(fitted, config, n=3, d=8).state
    tried = []
    for n in (4, 5, 6):
        recorder.calls.clear()
        state = learned(fitted, config, state, n=n, d=8).state
        tried.append(recorder.forms)
    assert tried == [[PLAIN], [PLAIN], [PLAIN, STRETCHED, FULL]]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ((0.0, 1.0, 2.0), FULL),
        ((0.0, 2.0, 1.0), STRETCHED),
        ((2.0, 1.0, 0.0), PLAIN),
        ((1.0, 1.0, 1.0), PLAIN),  # the simplest, if there is nothing to choose
        ((-math.inf,) * 3, PLAIN),
        ((-math.inf, -5.0, -math.inf), STRETCHED),
    ],
)
def test_the_form_with_the_best_score_is_trusted(monkeypatch, scores, expected):
    recorder = Recorder(monkeypatch, score=lambda n, form: scores[DEFAULT.forms.index(form)])
    state = learned(fitted, DEFAULT, n=12).state
    assert state.form == expected
    assert len(recorder.told) == expected.size(3)


@pytest.mark.parametrize("seed", range(3))
def test_among_all_forms_that_one_is_taken_which_alone_predicts_best(seed):
    x, y = data(seed, n=20)
    alone = {}
    for form in DEFAULT.forms:
        state = fitted(
            known(x, y), box(3), None, dataclasses.replace(DEFAULT, forms=(form,)), np.random.default_rng(0)
        ).state
        alone[form] = at(Evidence(x, y, DEFAULT.beliefs, form), state.thetas[form]).score
    assert fitted(known(x, y), box(3), None, DEFAULT, np.random.default_rng(0)).state.form == max(alone, key=alone.get)


def trusted(function, *, n, d, seed):
    x = np.random.default_rng(seed).uniform(-1.0, 1.0, (n, d))
    found = fitted(known(x, function(x)), box(d), None, DEFAULT, np.random.default_rng(0))
    return found.state.form, found.kernel


@pytest.mark.parametrize("seed", range(3))
def test_effects_are_trusted_where_every_coordinate_has_its_own(seed):
    form, kernel = trusted(lambda x: np.sin(3.0 * x + np.arange(12.0)).sum(-1), n=60, d=12, seed=seed)
    assert form == FULL
    assert kernel.share > 0.5


@pytest.mark.parametrize("seed", range(3))
def test_stretches_are_trusted_where_few_coordinates_do_anything(seed):
    # a product, so that there is more to it than effects
    form, kernel = trusted(lambda x: np.sin(2.0 * x[:, 0] + 1.0) * np.cos(2.0 * x[:, 1]), n=60, d=12, seed=seed)
    assert form.stretched
    assert kernel.stretch[:2].min() > 1.5 * kernel.stretch[2:].max()


def test_a_warm_fit_costs_no_more_than_its_steps_and_is_no_worse_than_the_last(monkeypatch):
    config = dataclasses.replace(DEFAULT, refit_until=2, refit_growth=100.0)
    first = learned(fitted, config, n=30)
    form = first.state.form
    calls = Calls(monkeypatch, "fit")
    second = learned(fitted, config, first.state, n=31)
    [(evidence, starts, _)] = calls.arguments
    assert evidence.form == second.state.form == form
    assert [start.tolist() for start in starts] == [first.state.thetas[form].tolist()]
    assert evidence.evaluations <= 2 * config.warm_steps + 21  # and the end of one line search
    x, y = data(n=31)
    fresh = Evidence(x, y, config.beliefs, form)
    assert fresh(second.state.thetas[form])[0] <= fresh(first.state.thetas[form])[0]


def check_handed_on(found, x, y, config, middle=0.0):
    """The model is that of the chosen theta, with the mean and the amplitude that belong to all data."""
    form, theta = found.state.form, found.state.thetas[found.state.form]
    expected = at(Evidence(x, y, config.beliefs, form, middle=middle), theta)
    assert not found.failed
    assert len(found.h) == 1
    for name in ("amplitude", "noise_ratio", "lengthscale", "mean"):
        np.testing.assert_allclose(getattr(found.h, name), getattr(expected.h, name), rtol=1e-10)
    np.testing.assert_allclose(found.y, expected.t, rtol=1e-12)
    np.testing.assert_allclose(found.kernel.stretch, expected.kernel.stretch, rtol=1e-12)
    assert (found.kernel.share > 0.0) == (found.kernel.spectrum is not None) == form.effects
    assert found.kernel.share == expected.kernel.share
    return expected


@pytest.mark.parametrize("form", DEFAULT.forms)
def test_a_fit_hands_on_what_it_found(form):
    config = dataclasses.replace(DEFAULT, forms=(form,), ambition=0.0)
    found = learned(fitted, config, n=12)
    x, y = data(n=12)
    assert not found.unsure
    assert found.best == check_handed_on(found, x, y, config).best
    theta = found.state.thetas[form]
    assert found.h.lengthscale[0] == pytest.approx(math.exp(theta[0]))
    strength = math.exp(theta[2])
    gap = (y - y.min()) / np.median(y[y > y.min()] - y.min())
    np.testing.assert_allclose(found.y, np.log(1.0 + strength * gap) / strength, rtol=1e-12)


def test_between_fits_mean_and_amplitude_are_those_of_the_new_data():
    config = dataclasses.replace(DEFAULT, refit_until=2, refit_growth=100.0, warm_growth=100.0)
    first = learned(fitted, config, n=30)
    x, y = data(n=31)
    second = fitted(known(x, y), box(3), first.state, config, np.random.default_rng(0))
    assert np.array_equal(second.state.thetas[first.state.form], first.state.thetas[first.state.form])
    assert len(second.y) == 31
    check_handed_on(second, x, y, config)
    assert second.h.amplitude[0] != first.h.amplitude[0]


def test_equal_values_count_once_among_the_good_ones():
    x, y = data(n=30, d=6)
    y = np.where(y < np.median(y), y.min(), y)  # a plateau of the best, wider than half the dimension
    found = fitted(known(x, y), box(6), None, dataclasses.replace(DEFAULT, ambition=0.5), np.random.default_rng(0))
    assert found.best < found.y.min() - 0.1 * np.ptp(np.unique(found.y)[:4])
    y = np.where(np.arange(30) == 7, 0.0, 1.0)  # one good point, and all others alike
    found = fitted(known(x, y), box(6), None, dataclasses.replace(DEFAULT, ambition=0.5), np.random.default_rng(0))
    assert found.best == pytest.approx(-0.5 * np.ptp(found.y), abs=0.1 * np.ptp(found.y))


@pytest.mark.parametrize("d", [1, 2, 5, 40])
@pytest.mark.parametrize("ambition", [0.0, 0.1, 2.0])
def test_an_improvement_begins_a_share_of_the_way_to_the_good_values_below_the_best(ambition, d):
    x, y = data(n=12, d=d)
    found = fitted(known(x, y), box(d), None, dataclasses.replace(DEFAULT, ambition=ambition), np.random.default_rng(0))
    best = check_handed_on(found, x, y, DEFAULT).best
    good = sorted(found.y)[min(11, d) // 2]  # the d/2-th after the best, or the middle one of fewer
    expected = best - ambition * max(good - best, 0.0)
    if found.unsure:
        expected = min(expected, found.y.min())
    assert found.best == pytest.approx(expected, rel=1e-10, abs=1e-12)
    assert found.best <= best
    if ambition and d > 2:
        assert found.best < best


@pytest.mark.parametrize("seed", range(5))
def test_the_best_value_is_no_luck_until_values_are_known_to_be_noisy(seed):
    config = dataclasses.replace(DEFAULT, ambition=0.0, noise_ambition=0.0)
    x, y = noisy_data(40, seed, sd=0.5)
    perhaps, never, certainly = (
        fitted(known(x, y, exact=exact), box(2), None, config, np.random.default_rng(0))
        for exact in (None, True, False)
    )
    assert perhaps.unsure
    assert perhaps.best == never.best == never.y.min()
    assert certainly.best == check_handed_on(certainly, x, y, config).best > never.best


@pytest.mark.parametrize("seed", range(3))
def test_good_values_that_are_not_allowed_do_not_make_exact_ones_look_noisy(seed):
    # The best allowed value lies above most of the others: the good ones do not lie above it
    x = np.random.default_rng(seed).uniform(-1.0, 1.0, (45, 6))
    y = x.sum(-1)
    constraints = np.where(y < np.median(y), 1.0, -1.0)[:, None]
    for more in ({}, {"constraints": constraints}):
        found = fitted(known(x, y, **more), box(6), None, DEFAULT, np.random.default_rng(0))
        assert not found.unsure


@pytest.mark.parametrize("choices", [False, True])
def test_among_choices_the_best_value_may_be_luck(choices):
    x, y = noisy_data(40, sd=0.5)
    lattice = Lattice(lambda z: z, lambda z, rng: z, np.array([choices, False]))
    domain = dataclasses.replace(box(2), lattice=lattice)
    assert domain.has_choices == choices
    config = dataclasses.replace(DEFAULT, ambition=0.0)
    found = fitted(known(x, y), domain, None, config, np.random.default_rng(0))
    assert found.unsure
    assert (found.best > found.y.min()) == choices


def test_the_best_value_seen_is_one_that_is_allowed():
    x, y = noisy_data(40, sd=0.5)
    constraints = np.where(y < np.sort(y)[3], 1.0, -1.0)[:, None]  # the best three are not
    found = fitted(known(x, y, constraints=constraints), box(2), None, DEFAULT, np.random.default_rng(0))
    assert found.best > np.sort(found.y)[2]


@pytest.mark.parametrize(("n", "count"), [(3, 1), (10, 9), (10, 10), (10, 11), (50, 7), (50, 20), (51, 2)])
def test_at_most_so_many_data_are_fitted_to_half_of_them_the_best(monkeypatch, n, count):
    recorder = Recorder(monkeypatch)
    config = dataclasses.replace(DEFAULT, fit_points=count, forms=(PLAIN,))
    x, y = data(n=n)
    found = fitted(known(x, y), box(3), None, config, np.random.default_rng(0))
    [(evidence, _, _)] = recorder.calls
    assert len(found.y) == n  # predictions are from all
    index = [int(np.flatnonzero((x == point).all(-1))[0]) for point in evidence.x]
    assert len(index) == len(set(index)) == min(n, count)
    unit = np.median(y[y > y.min()] - y.min())
    np.testing.assert_allclose(evidence.gaps, (y - y.min())[index] / unit, rtol=1e-12)
    order = np.argsort(y)
    assert set(order[: min(n, count) // 2].tolist()) <= set(index)
    if 3 <= count < n:
        ranks = np.sort(np.argsort(order)[index])[count // 2 :]
        assert ranks[-1] == n - 1  # up to the worst,
        steps = np.diff(ranks)
        assert len(steps) == 0 or np.ptp(steps) <= 1  # in even steps


def test_a_fit_to_some_of_the_data_is_used_for_predictions_from_all():
    config = dataclasses.replace(DEFAULT, fit_points=12)
    x, y = data(n=40)
    found = fitted(known(x, y), box(3), None, config, np.random.default_rng(0))
    check_handed_on(found, x, y, config)
    assert len(found.y) == 40


@pytest.mark.parametrize("form", DEFAULT.forms)
def test_where_the_centre_of_the_search_lies_makes_no_difference_to_what_is_fitted(form):
    # catches: effects that live on [-1, 1] about the centre and not about the middle of the box
    config = dataclasses.replace(DEFAULT, forms=(form,), fit_steps=5)
    x, y = data(n=15)
    center = np.array([1.0, -0.5, 0.0])
    moved = Domain(-1.0 - center, 1.0 - center, 10.0)
    here = fitted(known(x, y), box(3), None, config, np.random.default_rng(0))
    there = fitted(known(x - center, y), moved, None, config, np.random.default_rng(0))
    np.testing.assert_allclose(there.state.thetas[form], here.state.thetas[form], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(there.kernel.features(x - center), here.kernel.features(x), atol=1e-4)
    assert there.best == pytest.approx(here.best, rel=1e-3, abs=1e-4)


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
        found = fitted(known(x, np.full(5, 3.0)), box(3), state, DEFAULT, np.random.default_rng(0))
        state = found.state
        assert np.isfinite(values_of(found)).all()
        assert not found.y.any()


# --- noise and constraints -------------------------------------------------------------------------------------------

NAN = math.nan


def noisy_data(n, seed=0, *, sd=0.5, d=2):
    """A bowl, its values with noise of that standard deviation."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (n, d))
    return x, ((x - 0.2) ** 2).sum(-1) + sd * rng.standard_normal(n)


ONLY_PLAIN = dataclasses.replace(DEFAULT, forms=(PLAIN,))


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("more", [0, 3])
def test_what_is_expected_at_the_data_is_the_posterior_mean_in_units_of_the_values(told, more):
    # also with data that came after the fit
    x, y = noisy_data(25 + more)
    noise = np.random.default_rng(1).uniform(0.0, 1.0, 25 + more) if told else np.full(25 + more, NAN)
    state = fitted(known(x[:25], y[:25], noise=noise[:25]), box(2), None, ONLY_PLAIN, np.random.default_rng(0)).state
    found = expected(known(x, y, noise=noise), box(2), state, ONLY_PLAIN)
    truth = brute_force.expected_values(state.thetas[PLAIN], x, y, noise if told else None)
    np.testing.assert_allclose(found, truth, rtol=1e-6, atol=1e-6)
    assert np.abs(found - y).max() > 0.2


def test_what_is_expected_of_values_without_noise_is_what_they_are():
    x, y = noisy_data(25, sd=0.0)
    state = fitted(known(x, y), box(2), None, DEFAULT, np.random.default_rng(0)).state
    np.testing.assert_allclose(expected(known(x, y), box(2), state, DEFAULT), y, atol=1e-3)


def test_without_a_fit_to_the_kind_of_data_at_hand_what_is_expected_comes_from_a_new_one():
    x, y = noisy_data(8)
    without, told = known(x, y), known(x, y, noise=np.ones(8))
    states = [fitted(each, box(2), None, ONLY_PLAIN, np.random.default_rng(0)).state for each in (without, told)]
    for data, own, others in (
        (without, states[0], (states[1], None, Chain(x[0], x[0]))),
        (told, states[1], (states[0], None, Chain(x[0], x[0]))),
    ):
        found = expected(data, box(2), own, ONLY_PLAIN)
        for other in others:
            np.testing.assert_array_equal(expected(data, box(2), other, ONLY_PLAIN), found)


@pytest.mark.parametrize("n", [0, 1])
def test_of_fewer_than_two_values_nothing_is_expected_without_a_fit(n):
    x, y = noisy_data(8)
    assert expected(known(x[:n], y[:n]), box(2), None, ONLY_PLAIN) is None


@pytest.mark.parametrize("n", [12, 40])
def test_told_noise_reaches_the_fit_and_what_is_handed_on(n):
    x, y = noisy_data(n)
    noise = np.where(np.arange(n) % 3, np.linspace(0.1, 1.0, n), NAN)
    found = fitted(known(x, y, noise=noise), box(2), None, DEFAULT, np.random.default_rng(0))
    form, theta = found.state.form, found.state.thetas[found.state.form]
    assert found.state.told_noise
    assert [len(each) for each in found.state.thetas.values()] == [each.size(2) + 1 for each in DEFAULT.forms]
    amplitude = math.exp(theta[3 + 2 * form.effects])
    assert found.h.amplitude[0] == pytest.approx(amplitude, rel=1e-12)
    strength, unit = math.exp(theta[2]), np.median(y[y > y.min()] - y.min())
    slope = 1.0 / (1.0 + strength * (y - y.min()) / unit) / unit
    np.testing.assert_allclose(found.noise, (np.nan_to_num(noise) * slope) ** 2 / amplitude, rtol=1e-9)
    assert not fitted(known(x, y), box(2), None, DEFAULT, np.random.default_rng(0)).state.told_noise


def test_a_fit_with_told_noise_does_not_go_on_from_one_without_nor_the_other_way_round(monkeypatch):
    recorder = Recorder(monkeypatch)
    config = dataclasses.replace(DEFAULT, refit_until=2, refit_growth=100.0)
    x, y = noisy_data(20)
    datas = [known(x, y), known(x, y, noise=np.full(20, NAN)), known(x, y, noise=np.ones(20)), known(x, y)]
    state, counts = None, []
    for data in datas:
        recorder.calls.clear()
        state = fitted(data, box(2), state, config, np.random.default_rng(0)).state
        counts.append([len(starts) for _, starts, _ in recorder.calls])
    assert counts == [[3] * 3, [], [3] * 3, [3] * 3]  # noise that was never told is no noise


@pytest.mark.parametrize("learn", [DEFAULT, SAMPLERS[1]], ids=lambda config: config.name)
def test_the_best_is_the_best_of_what_is_allowed(learn):
    x, y = data(n=15)
    constraints = np.where(np.argsort(np.argsort(y)) < 4, 1.0, -1.0)[:, None]  # the best four are not
    config = dataclasses.replace(learn, ambition=0.0)
    free, kept, never, unknown = (
        config.learn(known(x, y, constraints=c), box(3), None, config, np.random.default_rng(0))
        for c in (np.empty((0, 0)), constraints, np.ones((15, 1)), np.full((15, 1), NAN))
    )
    assert np.array_equal(free.y, kept.y)  # all of them are learned from
    assert kept.best == pytest.approx(np.sort(free.y)[4], abs=1e-3)
    assert free.best == unknown.best < kept.best
    assert math.isnan(never.best)


@pytest.mark.parametrize("seed", range(3))
def test_noise_is_suspected_where_it_is_as_large_as_what_separates_the_good_values(seed):
    def unsure(n, sd, **more):
        x, y = noisy_data(n, seed, sd=sd)
        return fitted(known(x, y, **more), box(2), None, DEFAULT, np.random.default_rng(0)).unsure

    assert unsure(40, 0.1)
    assert not unsure(29, 0.1)  # too early to say ...
    assert unsure(29, 0.5)  # ... but not of noise as large as this
    assert not unsure(40, 0.0)
    assert not unsure(40, 0.5, constraints=np.ones((40, 1)))  # nothing is good yet


@pytest.mark.parametrize("n_allowed", [1, 2, 3, 4, 8, 20])
@pytest.mark.parametrize("seed", range(3))
def test_few_allowed_values_close_to_one_another_are_no_sign_of_noise(n_allowed, seed):
    x = np.random.default_rng(seed).uniform(-1.0, 1.0, (45, 6))
    y = x.sum(-1)
    c = np.where(np.argsort(np.argsort(y)) < n_allowed, -1.0, 1.0)[:, None]
    assert not fitted(known(x, y, constraints=c), box(6), None, DEFAULT, np.random.default_rng(0)).unsure


@pytest.mark.parametrize("seed", range(3))
def test_one_exact_parameter_is_no_sign_of_noise(seed):
    x = np.random.default_rng(seed).uniform(-1.0, 1.0, (40, 1))
    assert not fitted(known(x, x[:, 0] ** 2), box(1), None, DEFAULT, np.random.default_rng(0)).unsure


@pytest.mark.parametrize("seed", range(3))
def test_where_noise_hides_everything_the_search_keeps_close_to_a_point_that_is_good_for_certain(seed):
    rng = np.random.default_rng(seed)
    often = np.zeros((12, 6))  # evaluated again and again: it is good for certain
    x = np.concatenate([often, rng.uniform(-1.0, 1.0, (28, 6))])
    y = rng.standard_normal(40) - np.repeat([2.0, 0.0], [12, 28])

    def shelter(y, **more):
        return fitted(known(x, y, **more), box(6), None, DEFAULT, np.random.default_rng(0)).shelter

    assert not x[shelter(y)].any()
    assert shelter(y, exact=True) is None  # what looks like noise is the function
    assert shelter(100.0 * x.sum(-1) + y) is None  # there is more to be seen than noise
    assert shelter(np.ones(40)) is None  # ... or nothing at all
    assert shelter(y, constraints=np.ones((40, 1))) is None  # nowhere is good
    allowed = np.where(np.arange(40) < 12, 1.0, -1.0)[:, None]
    assert shelter(y, constraints=allowed) >= 12


def test_good_for_certain_is_what_is_good_even_if_it_is_one_standard_deviation_worse(monkeypatch):
    x, y = data(n=5, d=2)
    one = np.ones(1)
    predicted, uncertainty = np.array([0.0, -1.0, -0.2, -0.5, 0.3]), np.array([0.1, 2.0, 0.1, 0.5, 0.1])
    found = Fitted(one, Blend(np.ones(2)), Hyperparameters(one, one, one, one), y, predicted, uncertainty, 0.0, None)
    monkeypatch.setattr(cylbo.search.learn, "fits_and_process", lambda *args, **options: (some_fits(), found))
    assert fitted(known(x, y, exact=False), box(2), None, DEFAULT, np.random.default_rng(0)).shelter == 2
    assert fitted(known(x, y), box(2), None, DEFAULT, np.random.default_rng(0)).shelter is None  # it is not sure yet
    clear = dataclasses.replace(found, predicted=10.0 * predicted)
    monkeypatch.setattr(cylbo.search.learn, "fits_and_process", lambda *args, **options: (some_fits(), clear))
    assert fitted(known(x, y, exact=False), box(2), None, DEFAULT, np.random.default_rng(0)).shelter is None


@pytest.mark.parametrize("n", [4, 5, 12])
def test_noise_that_hides_everything_is_suspected_early(monkeypatch, n):
    x, y = data(n=n, d=2)
    one = np.ones(1)
    found = Fitted(one, Blend(np.ones(2)), Hyperparameters(one, one, one, one), y, 0.1 * y, one, 0.0, None)
    monkeypatch.setattr(cylbo.search.learn, "fits_and_process", lambda *args, **options: (some_fits(), found))
    assert fitted(known(x, y), box(2), None, DEFAULT, np.random.default_rng(0)).unsure == (n >= 5)


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
        found = sampled(known(x, y), box(3), chain, config, np.random.default_rng(seed))
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
    monkeypatch.setattr(cylbo.search.learn, "sample", without_density)
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
        cylbo.search.learn,
        "sample",
        lambda *args, **options: (left.pop() if left else without_density)(*args, **options),
    )
    found = learned(sampled, SAMPLERS[0])
    _, y = data()
    assert found.failed
    assert found.state is None
    assert found.h.amplitude.tolist() == pytest.approx([y.std(ddof=1)])
    assert found.h.mean.tolist() == pytest.approx([y.mean()])


def test_the_mean_of_the_last_round_is_brought_into_the_range_of_the_new_values(monkeypatch):
    chain = learned(sampled, SAMPLERS[0]).state
    outside = Chain(np.append(chain.theta[:-1], 1e6), chain.widths)
    monkeypatch.setattr(cylbo.search.learn, "sample", without_density)
    found = learned(sampled, SAMPLERS[0], outside)
    assert found.h.mean.tolist() == [data()[1].max()]
    assert found.state is outside


def test_sampling_does_not_go_on_from_a_fit():
    config = SAMPLERS[0]
    assert np.array_equal(values_of(learned(sampled, config, some_fits())), values_of(learned(sampled, config)))


# --- both ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", [DEFAULT, *SAMPLERS], ids=lambda config: config.name)
def test_the_same_arguments_give_the_same_result_and_are_not_modified(config):
    first = config.learn(known(*data(n=34)), box(3), None, config, np.random.default_rng(5))
    x, y = data(n=35)
    domain, state = box(3), first.state
    arrays = [x, y, domain.low, domain.high]
    arrays += [state.theta, state.widths] if isinstance(state, Chain) else list(state.thetas.values())
    before = [array.copy() for array in arrays]
    found, again = (config.learn(known(x, y), domain, state, config, np.random.default_rng(6)) for _ in range(2))
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
