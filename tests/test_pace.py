"""Seconds and bytes: what a budget leaves room for, where the clock stops, and that there is a suggestion always."""

import dataclasses
import itertools
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cylbo
from cylbo.methods import DEFAULT
from cylbo.model import evidence as fit_room
from cylbo.model.beliefs import Beliefs, Form
from cylbo.model.evidence import Evidence
from cylbo.model.fit import fit
from cylbo.run import optimizer as optimizer_room
from cylbo.search import budget as pace
from cylbo.search import learn as learn_room
from cylbo.search import suggest as suggest_room
from cylbo.search.budget import Budget, Plan, cost, plan
from cylbo.search.data import Known, representative
from cylbo.search.feasibility import learn_limits
from cylbo.search.improvement import Acquired
from cylbo.search.learn import Fits, fits_and_process, fitted
from cylbo.search.suggest import suggest
from cylbo.space.box import Box
from cylbo.space.named import Frame

PLAIN, FULL = Form(), Form(stretched=True, effects=True)
COST = pace._Cost(evidence=0.02, factor=0.1, candidate=1e-4)  # seconds with 300 data
QUICK = {"n_sobol": 32, "n_spray": 8, "n_starts": 3, "max_steps": 4, "fit_steps": 2, "warm_steps": 1}
GROWTH = {"refit_until": 5, "refit_growth": 0.5, "warm_growth": 0.2, "n_first_discrete": 1}
CHEAP = dataclasses.replace(DEFAULT, **QUICK, **GROWTH)
PLANNED = {"points", "fit_points", "candidates"}


class Clock:
    """Stands in for the module `time`: time passes where a test says so, and by `tick` with every look."""

    def __init__(self, tick=0.0):
        self.now, self.tick = 0.0, tick

    def perf_counter(self):
        self.now += self.tick
        return self.now


def wound(monkeypatch, tick=0.0):
    """One clock for all rooms that look at one, and fixed costs."""
    clock = Clock(tick)
    for room in (fit_room, learn_room, suggest_room, optimizer_room):
        monkeypatch.setattr(room, "time", clock)
    monkeypatch.setattr(pace, "cost", lambda d: COST)
    monkeypatch.setattr(optimizer_room, "cost", lambda d: COST)
    return clock


@pytest.fixture
def clock(monkeypatch):
    return wound(monkeypatch)


@pytest.fixture
def evaluated(monkeypatch, clock):
    """Every theta that an evidence was asked for, with its value; each takes one second."""
    seen, call = [], Evidence.__call__

    def timed(self, theta):
        value, gradient = call(self, theta)
        seen.append((self.form, value, theta.copy()))
        clock.now += 1.0
        return value, gradient

    monkeypatch.setattr(Evidence, "__call__", timed)
    return seen


def data(n=25, d=2, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (n, d))
    return x, np.exp(rng.standard_normal(n)) + 3.0 * (x**2).sum(-1)


def known(n=25, d=2, *, pending=0, failed=0, **more):
    x, y = data(n + pending + failed, d)
    return Known(x=x[:n], y=y[:n], pending=x[n : n + pending], failed=x[n + pending :], **more)


def rng(seed=0):
    return np.random.default_rng(seed)


# ---- a fit that the clock stops


@pytest.mark.parametrize("seconds", [-5.0, 0.0, 1.0, 4.5, 9.0])
@pytest.mark.parametrize("form", [PLAIN, FULL])
def test_a_descent_ends_with_the_first_evaluation_after_its_time_at_the_best_it_saw(clock, evaluated, seconds, form):
    clock.now = 100.0
    evidence = Evidence(*data(), Beliefs(), form, until=100.0 + seconds)
    value, theta = evidence.descended(evidence.upper - 0.5, 50)
    assert len(evaluated) == max(math.floor(seconds), 0) + 1
    _, lowest, where = min(evaluated, key=lambda seen: seen[1])
    assert value == lowest
    assert np.array_equal(theta, where)


def test_the_best_that_a_descent_saw_need_not_be_the_last(monkeypatch, clock):
    # A line search may try what is worse than what it tried before
    values, thetas = [5.0, 4.0, 1.0, 3.0, 2.0], []

    def scripted(self, theta):
        thetas.append(theta.copy())
        clock.now += 1.0
        return values[len(thetas) - 1], np.ones_like(theta)

    monkeypatch.setattr(Evidence, "__call__", scripted)
    evidence = Evidence(*data(), Beliefs(), PLAIN, until=4.0)
    value, theta = evidence.descended(evidence.prior_mean, 50)
    assert len(thetas) == 5
    assert value == 1.0
    assert np.array_equal(theta, thetas[2])


@pytest.mark.parametrize("seconds", [0.0, 3.0, 12.0, 20.0, 30.0, 40.0])
def test_a_fit_begins_nothing_after_its_time_and_gives_the_best_of_all_it_saw(evaluated, seconds):
    evidence = Evidence(*data(), Beliefs(), FULL, until=seconds)
    starts = [evidence.prior_mean + shift for shift in (3.0, -1.0, 0.5)]
    found = fit(evidence, starts, 40)
    assert len(evaluated) == seconds + 1
    assert evidence(found.theta)[0] == min(value for _, value, _ in evaluated)


def test_a_fit_with_time_enough_is_that_without_a_clock(evaluated):
    thetas = []
    for until in (math.inf, 1e6):
        evidence = Evidence(*data(), Beliefs(), FULL, until=until)
        thetas.append(fit(evidence, [evidence.prior_mean, evidence.upper - 0.5], 20).theta)
    assert np.array_equal(*thetas)
    half = len(evaluated) // 2
    assert [theta.tolist() for *_, theta in evaluated[:half]] == [theta.tolist() for *_, theta in evaluated[half:]]


def forms_of(seen):
    return [(form, len(list(group))) for form, group in itertools.groupby(form for form, *_ in seen)]


@pytest.mark.parametrize(
    # Of what is left, the first of three gets a third, the second a half, the last everything
    ("until", "counts"),
    [(30.0, [11, 10, 10]), (0.0, [1, 1, 1]), (-7.0, [1, 1, 1]), (6.0, [3, 2, 2])],
)
def test_every_form_gets_its_share_of_the_time(evaluated, until, counts):
    x, y = data(40)
    config = dataclasses.replace(DEFAULT, fit_steps=100)
    after, process = fits_and_process(x, y, Box([(-1, 1)] * 2).domain, None, config, until=until)
    assert forms_of(evaluated) == list(zip(DEFAULT.forms, counts, strict=True))
    assert list(after.thetas) == list(DEFAULT.forms)
    assert np.isfinite(np.concatenate([*after.thetas.values(), process.predicted])).all()


def test_what_a_form_leaves_of_its_time_is_for_the_others(evaluated):
    # Few steps: the plain form, of three hyperparameters, is done before a third of the time is over
    x, y = data(40)
    config = dataclasses.replace(DEFAULT, fit_steps=1)
    fits_and_process(x, y, Box([(-1, 1)] * 2).domain, None, config, until=1000.0)
    unhurried = forms_of(evaluated)
    evaluated.clear()
    learn_room.time.now = 0.0
    first = unhurried[0][1]
    fits_and_process(x, y, Box([(-1, 1)] * 2).domain, None, config, until=3.0 * first + 3.0)
    assert forms_of(evaluated)[0] == unhurried[0]
    assert forms_of(evaluated)[1][1] == min(unhurried[1][1], first + 2)  # (3 first + 3 - first) / 2, and one more


def test_between_the_fits_of_all_forms_the_trusted_one_has_all_the_time(evaluated):
    x, y = data(40)
    domain = Box([(-1, 1)] * 2).domain
    last = Fits({form: np.zeros(form.size(2)) for form in DEFAULT.forms}, FULL, 39, 30)
    after, _ = fits_and_process(x, y, domain, last, dataclasses.replace(DEFAULT, warm_steps=100), until=8.0)
    assert forms_of(evaluated) == [(FULL, 9)]
    assert np.array_equal(after.thetas[FULL], min(evaluated, key=lambda seen: seen[1])[2])


def test_the_fits_of_limits_are_stopped_too(evaluated):
    more = {"constraints": data(25, 2, seed=1)[0]}
    learn_limits(known(failed=5, **more), {}, Box([(-1, 1)] * 2).domain, DEFAULT, until=0.0)
    assert len(evaluated) == 6  # of three limits two forms each, once


# ---- a climb that the clock stops

SPACE = cylbo.Space(r=cylbo.Real(0, 1), k=cylbo.Integer(0, 6), c=cylbo.Categorical(["a", "b", "c"]), b=cylbo.Boolean())
DOMAINS = {
    "box": Box([(-1, 1)] * 2).domain,
    "ball": Box([(-1, 1)] * 2, region="ball").domain,
    "lattice": Frame(SPACE).domain,
}
every_domain = pytest.mark.parametrize("domain", DOMAINS.values(), ids=DOMAINS)


def known_in(domain, n=12, **more):
    x = domain.from_unit_cube(rng(3).random((n + 2, domain.dim)))
    y = np.sin(3.0 * x).sum(-1) + x.sum(-1)
    return Known(x=x[:n], y=y[:n], pending=x[n : n + 1], failed=x[n + 1 :], **more)


def seen(data):
    return np.concatenate([data.x, data.pending, data.failed])


def is_new(x, data):
    return bool((np.abs(seen(data) - x) > 1e-9).any(-1).all())


@pytest.fixture
def climbed(monkeypatch, clock):
    """Every point that a slope was asked for, with its value; each call takes one second."""
    found, slope = [], suggest_room._Model._slope

    def timed(self, x):
        value, gradient = slope(self, x)
        found.append((x.copy(), value))
        clock.now += 1.0
        return value, gradient

    monkeypatch.setattr(suggest_room._Model, "_slope", timed)
    return found


def climb_until(monkeypatch, until, data, domain, method=CHEAP, *, starts=None):
    """A suggestion of which only the climb is hurried; `starts` gets its starts."""
    room = Plan(len(data.y), method.fit_points, 1.0, climb_until=until)
    monkeypatch.setattr(suggest_room, "plan", lambda *_: room)
    best_starts = suggest_room.best_starts

    def noted(*args, **options):
        chosen = best_starts(*args, **options)
        if starts is not None:
            starts.extend(chosen)
        return chosen

    monkeypatch.setattr(suggest_room, "best_starts", noted)
    return suggest(data, None, domain, method, rng(), budget=Budget(seconds=1.0))


@every_domain
@pytest.mark.parametrize("until", [-1.0, 0.0, 3.0, 7.5])
def test_a_climb_that_runs_out_of_time_gives_the_best_point_it_saw(monkeypatch, climbed, domain, until):
    data, starts = known_in(domain), []
    method = dataclasses.replace(CHEAP, max_steps=400)
    made = climb_until(monkeypatch, until, data, domain, method, starts=starts)
    assert len(climbed) == max(math.floor(until), 0) + 1
    assert made.rung == "model"
    assert made.x.shape == (domain.dim,)
    assert bool(domain.contains(made.x[None])[0])
    assert is_new(made.x, data)
    assert PLANNED | {"acquisition"} <= set(made.info)
    points, values = (np.concatenate(parts) for parts in zip(*climbed, strict=True))
    if domain.lattice is None:
        # At the rim of the ball another projection may move the last digit
        rounding = 0.0 if domain.within_box else 1e-14
        np.testing.assert_allclose(made.x, points[values.argmax()], rtol=rounding, atol=0.0)
        assert made.info["acquisition"] == pytest.approx(values.max(), rel=1e-9)
    else:  # what was seen may lie between points that can be evaluated
        candidates = np.array([*domain.project(points[values.argmax()][None]), *starts])
        assert any(np.array_equal(made.x, x) for x in candidates)
        np.testing.assert_array_equal(domain.project(made.x[None])[0], made.x)


@every_domain
def test_a_climb_in_time_is_that_without_a_clock(monkeypatch, climbed, domain):
    data = known_in(domain)
    hurried = climb_until(monkeypatch, 1e6, data, domain)
    free = suggest(data, None, domain, CHEAP, rng())
    assert np.array_equal(hurried.x, free.x)
    assert {name: value for name, value in hurried.info.items() if name not in PLANNED} == free.info
    assert {"displacement", "spread"} <= set(free.info)


def test_a_climb_that_was_stopped_does_not_say_how_far_it_would_have_led(monkeypatch, climbed):
    # Else a climb that never got away from its start would look like an acquisition that is flat
    made = climb_until(monkeypatch, 0.0, known_in(DOMAINS["box"]), DOMAINS["box"])
    assert not {"displacement", "spread"} & set(made.info)


def test_if_the_best_point_that_was_seen_is_a_known_one_the_best_new_start_is_taken(monkeypatch, climbed):
    domain, starts = DOMAINS["box"], []
    data = known_in(domain)
    opened = data.pending[0]

    def at_the_open_point(slope, starts, domain, *, learning_rate, max_steps):
        slope(np.array([opened]))
        raise AssertionError("the clock should have stopped it")

    def nearness(posterior, best):  # the known point is the best by far
        return Acquired(-posterior.mean[0], -np.ones_like(posterior.mean), np.zeros_like(posterior.mean))

    method = dataclasses.replace(CHEAP, climb=at_the_open_point, acquisition=nearness)
    made = climb_until(monkeypatch, 0.0, data, domain, method, starts=starts)
    new = [x for x in starts if is_new(x, data)]
    assert made.rung == "model"
    assert np.array_equal(made.x, new[0])  # starts come from the best on


def test_a_slope_that_is_no_number_at_first_does_not_hide_what_comes_after():
    values = iter([[np.nan, np.nan], [1.0, np.nan], [np.nan, 0.5], [2.0, 3.0]])
    slope = suggest_room._Timed(lambda x: (np.array(next(values)), x), 1, 1e18)
    bests = []
    for i in range(4):
        slope(np.array([[10.0 * i], [10.0 * i + 1.0]]))
        bests.append((slope.best_x.tolist(), slope.best_value))
    assert bests == [([], -math.inf), ([[10.0]], 1.0), ([[10.0]], 1.0), ([[31.0]], 3.0)]


@every_domain
def test_if_no_slope_was_a_number_in_time_a_start_is_taken(monkeypatch, clock, domain):
    data, starts = known_in(domain), []

    def nowhere(self, x):
        clock.now += 1.0
        return np.full(len(x), np.nan), np.zeros_like(x)

    monkeypatch.setattr(suggest_room._Model, "_slope", nowhere)
    made = climb_until(monkeypatch, 0.0, data, domain, starts=starts)
    assert made.rung == "model"
    assert any(np.array_equal(made.x, x) for x in starts)
    assert is_new(made.x, data)


# ---- what a budget leaves room for


COSINES = {1: 32, 10: 32, 100: 32, 200: 16, 500: 8}  # by dimension


def largest(fits):
    """The largest number that fits, found by trying."""
    return next(p for p in itertools.count() if not fits(p + 1))


def expected_points(budget, d):
    """By the costs above: a factor grows with the power 2.5 and may take a quarter of the seconds. In half of the bytes
    there must be room for ten matrices of all points and five numbers per coordinate and cosine of each.
    """
    rooms = []
    if budget.seconds is not None:
        rooms.append(largest(lambda p: COST.factor * (p / 300) ** 2.5 <= 0.25 * budget.seconds))
    if budget.memory is not None:
        rooms.append(largest(lambda p: 8 * (10 * p * p + 5 * COSINES[d] * d * p) <= 0.5 * budget.memory))
    return min(rooms)


def expected_fit_points(budget, d, n_forms):
    """Twenty evaluations of every form in three tenths of the seconds; in half of the bytes ten matrices and one for
    each cosine.
    """
    rooms = []
    if budget.seconds is not None:
        each = 0.3 * budget.seconds / (20 * n_forms)
        rooms.append(largest(lambda p: COST.evidence * (p / 300) ** 2.5 <= each))
    if budget.memory is not None:
        rooms.append(largest(lambda p: 8 * (10 + COSINES[d]) * p * p <= 0.5 * budget.memory))
    return min(rooms)


BUDGETS = [
    Budget(seconds=0.3),
    Budget(seconds=1.7),
    Budget(seconds=20.0),
    Budget(memory=3e6),
    Budget(memory=40e6),
    Budget(memory=1e9),
    Budget(seconds=0.3, memory=1e9),
    Budget(seconds=20.0, memory=3e6),
    Budget(seconds=2.0, memory=2e7),
]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("d", COSINES)
def test_a_plan_uses_what_there_is_room_for(clock, budget, d):
    n, most = 10**6, 10**5
    config = dataclasses.replace(DEFAULT, fit_points=most)
    found = plan(budget, n, d, config, began=7.0)
    assert found.points == max(expected_points(budget, d), 50)
    assert found.fit_points == max(expected_fit_points(budget, d, 3), 50)
    ends = (found.fit_until, found.limits_until, found.climb_until)
    if budget.seconds is None:
        assert ends == (math.inf,) * 3
        assert found.candidates == 1.0
        return
    assert ends == pytest.approx([7.0 + share * budget.seconds for share in (0.3, 0.4, 0.95)], rel=1e-12)
    if budget.memory is None:
        # A prediction grows with the square of the data; all candidates may take three twentieths of the seconds
        total = 500 + 5 * 200 + found.points
        seconds = found.candidates * total * COST.candidate * (found.points / 300) ** 2
        assert found.candidates == 0.02 or seconds == pytest.approx(0.15 * budget.seconds, rel=0.02)


@pytest.mark.parametrize("n", [2, 3, 49, 50, 51, 200])
@pytest.mark.parametrize("budget", [Budget(seconds=1e4), Budget(memory=1e10), Budget(seconds=1e4, memory=1e10)])
def test_with_few_data_everything_is_used(clock, n, budget):
    found = plan(budget, n, 5, DEFAULT, 0.0)
    assert (found.points, found.fit_points, found.candidates) == (n, 600, 1.0)  # at most, see DEFAULT


@pytest.mark.parametrize("n", [2, 49, 50, 51, 10**6])
@pytest.mark.parametrize(
    ("budget", "candidates"),
    [(Budget(seconds=1e-9), 0.02), (Budget(memory=1.0), 1.0), (Budget(seconds=1e-300, memory=1e-300), 0.02)],
)
def test_there_is_a_least_that_is_always_used(clock, n, budget, candidates):
    found = plan(budget, n, 5, DEFAULT, 0.0)
    assert (found.points, found.fit_points) == (min(n, 50), 50)
    assert found.candidates == candidates


def test_hyperparameters_are_learned_from_no_more_than_the_configuration_says(clock):
    config = dataclasses.replace(DEFAULT, fit_points=30)
    for budget in (Budget(seconds=1e-9), Budget(seconds=1e4), Budget(memory=1.0)):
        assert plan(budget, 1000, 5, config, 0.0).fit_points == 30


numbers = st.none() | st.floats(min_value=5e-324, exclude_min=True)


@given(numbers, numbers, st.integers(2, 10**7), st.integers(1, 10**4), st.floats(-1e9, 1e9))
def test_any_budget_has_a_plan(seconds, memory, n, d, began):
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(pace, "cost", lambda d: COST)
        found = plan(Budget(seconds, memory), n, d, DEFAULT, began)
    assert type(found.points) is type(found.fit_points) is int
    assert min(n, 50) <= found.points <= n
    assert 50 <= found.fit_points <= 600
    assert 0.02 <= found.candidates <= 1.0
    assert began <= found.fit_until <= found.limits_until <= found.climb_until
    assert found.applied(DEFAULT).fit_points == found.fit_points


@given(st.floats(1e-6, 1e6), st.floats(1e3, 1e12), st.integers(2, 10**5), st.floats(1.0, 1e3))
def test_more_room_never_leaves_less(seconds, memory, n, times):
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(pace, "cost", lambda d: COST)
        less, *more = (
            plan(Budget(s, m), n, 5, DEFAULT, 0.0)
            for s, m in [(seconds, memory), (times * seconds, memory), (seconds, times * memory), (None, memory)]
        )
    for found in more:
        assert found.points >= less.points
        assert found.fit_points >= less.fit_points


def test_a_plan_changes_nothing_of_the_configuration_but_numbers_of_candidates_and_data():
    config = Plan(points=70, fit_points=60, candidates=0.11).applied(DEFAULT)
    assert (config.n_sobol, config.n_spray, config.fit_points) == (55, 22, 60)
    assert dataclasses.replace(config, n_sobol=500, n_spray=200, fit_points=600) == DEFAULT
    tiny = Plan(points=2, fit_points=2, candidates=0.02).applied(CHEAP)
    assert (tiny.n_sobol, tiny.n_spray) == (1, 1)  # of 32 and 8
    assert Plan(2, 2, 0.02).applied(dataclasses.replace(CHEAP, n_spray=0)).n_spray == 0


def test_costs_are_measured_once():
    found = cost(2)
    assert min(found.evidence, found.factor, found.candidate) > 0.0
    assert cost(2) is found


# ---- some of the data

ORDERED = np.array([7, 2, 9, 0, 4, 1, 8, 3, 6, 5])  # from the best on


@pytest.mark.parametrize(
    ("count", "kept"),
    [
        (2, [7, 2]),  # the best and, of the rest, the first
        (3, [7, 2, 5]),  # the rest evenly, from its first to its last
        (4, [7, 2, 9, 5]),
        (6, [7, 2, 9, 0, 8, 5]),  # places 0, 3, 6 of the seven that are left
        (10, ORDERED),
        (11, ORDERED),
    ],
)
def test_half_of_some_are_the_best_and_the_others_come_evenly_from_the_rest(count, kept):
    assert representative(ORDERED, count).tolist() == sorted(kept)


@given(st.integers(1, 80), st.integers(2, 90), st.integers(0, 9))
def test_some_are_so_many_and_none_twice(n, count, seed):
    order = rng(seed).permutation(n)
    kept = representative(order, count)
    assert len(kept) == min(n, count)
    assert (np.diff(kept) > 0).all()
    assert set(order[: min(n, count) // 2]) <= set(kept)


def test_what_is_thinned_keeps_the_best_half_and_leaves_out_the_rest():
    data = known(40, 3, pending=2, failed=30, noise=np.arange(40.0), constraints=np.full((40, 2), -1.0))
    data.constraints[:, 0] = -np.arange(40.0) - 1.0
    thin = data.thinned(12)
    index = [int(np.flatnonzero((data.x == x).all(-1))[0]) for x in thin.x]
    assert len(index) == 12
    assert index == sorted(index)
    assert set(np.argsort(data.y)[:6]) <= set(index)
    assert np.array_equal(thin.y, data.y[index])
    assert np.array_equal(thin.noise, data.noise[index])
    assert np.array_equal(thin.constraints, data.constraints[index])
    assert np.array_equal(thin.pending, data.pending)
    assert np.array_equal(thin.failed, data.failed[-6:])  # the last ones
    every = np.concatenate([thin.x, thin.left_out, thin.failed])
    assert sorted(map(tuple, every)) == sorted(map(tuple, np.concatenate([data.x, data.failed])))
    assert not thin.is_new(np.concatenate([data.x, data.failed, data.pending])).any()
    assert thin.is_new(thin.x[:1] + 1e-3).all()


def test_the_best_of_a_constrained_run_are_those_that_keep_the_constraints():
    data = known(20, constraints=np.ones((20, 1)))
    worst = np.argsort(data.y)[-3:]
    data.constraints[worst] = -1.0
    assert set(map(bytes, data.x[worst])) <= set(map(bytes, data.thinned(6).x))


@pytest.mark.parametrize("count", [25, 26, 1000])
def test_what_is_few_enough_is_not_thinned(count):
    for data in (known(25), known(25, failed=12), known(25, noise=np.ones(25))):
        assert data.thinned(count) is data


def test_failures_are_thinned_where_values_are_not():
    data = known(10, failed=20)
    thin = data.thinned(10)
    assert np.array_equal(thin.x, data.x)
    assert np.array_equal(thin.failed, data.failed[-5:])
    assert np.array_equal(thin.left_out, data.failed[:-5])
    assert len(data.thinned(1).failed) == 1  # never none of them


@pytest.mark.parametrize(
    ("second", "given", "settled", "noisy"),
    [
        (None, None, False, False),
        (0.0, None, True, False),  # one point, twice the same value
        (1.0, None, True, True),  # ... two values
        (None, False, True, True),
        (None, True, True, False),
    ],
)
def test_whether_values_are_noisy_is_known_from_those_that_are_left_out_too(second, given, settled, noisy):
    x, y = data(30)
    if second is not None:  # at a place that is not kept
        place = int(np.argsort(y)[12])
        x, y = np.concatenate([x, x[[place]]]), np.append(y, y[place] + second)
    every = Known(x=x, y=y, pending=x[:0], failed=x[:0], exact=given)
    thin = every.thinned(6)
    assert len(set(map(bytes, thin.x))) == 6  # so that those which are kept do not tell
    assert (every.settled, every.noisy) == (thin.settled, thin.noisy) == (settled, noisy)


def test_noise_that_was_told_is_known_from_those_that_are_left_out_too():
    noise = np.full(30, np.nan)
    every = known(30, noise=noise)
    noise[np.argsort(every.y)[12]] = 0.5
    thin = every.thinned(6)
    assert thin.told_noise is None
    assert thin.settled
    assert thin.noisy


def test_a_point_that_was_left_out_once_may_be_evaluated_again_where_it_was_kept():
    x, y = data(30)
    best = int(y.argmin())
    x, y = np.concatenate([x, x[[best]], x[[best]]]), np.append(y, [y.max() + 1.0, y.max() + 2.0])
    thin = Known(x=x, y=y, pending=x[:0], failed=x[:0]).thinned(4)
    kept = int((thin.x == x[best]).all(-1).sum())
    assert 1 <= kept < 3  # some of the three looks are left out
    assert thin.is_new(x[[best]], repeat=True).all()
    assert not thin.is_new(x[[best]]).any()


def test_fits_count_all_data_when_some_are_left_out(clock):
    every = known(120, exact=True)
    made = suggest(every, None, Box([(-1, 1)] * 2).domain, CHEAP, rng(), budget=Budget(memory=1.0))
    assert made.info["points"] == 50
    assert (made.state.chosen_at, made.state.fitted_at) == (120, 120)


@pytest.mark.parametrize("rank", [0, 3])
def test_the_point_that_is_evaluated_again_is_the_one_that_was_meant(monkeypatch, rank):
    # Of 90 data 50 are looked at, so that each of them has another place among all
    x, y = data(90)
    order = np.argsort(y)[::-1]  # from the worst on
    x, y = x[order], y[order]
    meant = 89 - rank

    def again(model, _):
        return int(np.flatnonzero((model.known.x == x[meant]).all(-1))[0])

    monkeypatch.setattr(suggest_room._Model, "more_telling", again)
    opt = cylbo.Optimizer([(-1, 1)] * 2, seed=0, method=CHEAP, x0=x, y0=y, noisy=True, max_memory=1)
    opt.tell(opt.ask(), 100.0)
    trial = opt.ask()
    assert trial.origin == "repeated"
    assert np.array_equal(trial.x, x[meant])


def test_the_point_that_is_evaluated_once_more_to_find_out_about_noise_is_the_best_of_all():
    x, y = data(90)
    order = np.argsort(y)[::-1]
    every = Known(x=x[order], y=y[order], pending=x[:0], failed=x[:0])

    def unsure(*args):
        return dataclasses.replace(fitted(*args), unsure=True)

    method = dataclasses.replace(CHEAP, learn=unsure)
    made = suggest(every, None, Box([(-1, 1)] * 2).domain, method, rng(), budget=Budget(memory=1.0))
    assert made.rung == "repeated"
    assert np.array_equal(made.x, every.x[89])


# ---- whatever the budget, there is a suggestion

TIGHT = {
    "a nanosecond": {"max_suggest_seconds": 1e-9},
    "a millisecond": {"max_suggest_seconds": 1e-3},
    "a byte": {"max_memory": 1},
}
every_tight_budget = pytest.mark.parametrize("budget", TIGHT.values(), ids=TIGHT)


def check_run(opt, n, outcome, contains):
    """Ask and tell n times; every point is new, unless it is there to find out about noise, and allowed."""
    points = set()
    for i in range(n):
        trial = opt.ask()
        assert contains(trial)
        assert (trial.x.tobytes() not in points) == (trial.origin != "repeated")
        assert trial.origin in ("center", "random", "model", "repeated")
        points.add(trial.x.tobytes())
        outcome(opt, trial, i)


def in_box(trial):
    return bool((np.abs(trial.x) <= 1.0).all())


def told(opt, trial, i):
    opt.tell(trial, float(((trial.x - 0.3) ** 2).sum()))


def troubled(opt, trial, i):
    """Some fail, some stay open; two constraints, and noise that is told now and then."""
    if i % 8 == 1:
        opt.fail(trial, "diverged")
    elif i % 16 != 5:
        value = float(((trial.x - 0.3) ** 2).sum())
        noise = 0.1 if i % 7 == 0 else None
        opt.tell(trial, value, std=noise, constraints=[float(trial.x[0] - 0.2), 0.5 - value])


@every_tight_budget
@pytest.mark.parametrize("d", [1, 2, 30])
def test_a_budget_is_never_too_small(monkeypatch, budget, d):
    wound(monkeypatch, tick=1e-4)
    opt = cylbo.Optimizer([(-1, 1)] * d, seed=d, method=CHEAP, **budget)
    check_run(opt, 75, troubled, in_box)
    assert len(opt.history.of("done")) == 60


def test_a_budget_is_never_too_small_where_all_goes_well(monkeypatch):
    wound(monkeypatch, tick=1e-4)
    opt = cylbo.Optimizer([(-1, 1)] * 2, seed=0, method=CHEAP, max_suggest_seconds=1e-9, max_memory=1)
    check_run(opt, 61, told, in_box)


@every_tight_budget
def test_a_budget_is_never_too_small_for_a_space(monkeypatch, budget):
    wound(monkeypatch, tick=1e-4)
    opt = cylbo.Optimizer(SPACE, seed=0, method=CHEAP, **budget)
    check_run(opt, 75, troubled, lambda trial: SPACE.vector(trial.params, "x").tolist() == trial.x.tolist())


@pytest.mark.parametrize("budget", [{"max_suggest_seconds": 1e-9}, {"max_memory": 1}], ids=str)
def test_every_point_of_a_finite_space_is_found_when_only_some_of_them_are_looked_at(monkeypatch, budget):
    wound(monkeypatch, tick=1e-4)
    monkeypatch.setattr(pace, "FEWEST_POINTS", 5)
    space = cylbo.Space(k=cylbo.Integer(0, 7), c=cylbo.Categorical(["a", "b", "c"]), b=cylbo.Boolean())
    opt = cylbo.Optimizer(space, seed=0, method=CHEAP, noisy=False, **budget)
    proposed = []
    monkeypatch.setattr(
        optimizer_room,
        "suggest",
        lambda known, *rest: proposed.append((known, suggest(known, *rest))) or proposed[-1][1],
    )
    for i in range(48):
        told(opt, opt.ask(), i)
    assert len({trial.x.tobytes() for trial in opt.trials}) == 48
    with pytest.raises(cylbo.SpaceExhaustedError):
        opt.ask()
    assert {made.info.get("points", 5) for _, made in proposed[5:]} == {5}
    assert all(is_new(made.x, known) for known, made in proposed if made.rung == "model")
    assert sum(made.rung == "model" for _, made in proposed) > 30


@pytest.mark.parametrize("value", [0, 0.0, -1, -1e-9, math.nan, -math.inf, True, "1", [1.0], 1j])
@pytest.mark.parametrize("name", ["max_suggest_seconds", "max_memory"])
def test_a_budget_that_is_none_gets_a_clear_error(name, value):
    fun = []
    for call in (cylbo.Optimizer, lambda bounds, **options: cylbo.minimize(fun.append, bounds, **options)):
        with pytest.raises(ValueError, match=f"{name} must be a positive number or None, got"):
            call([(0, 1)], **{name: value})
    assert not fun


@pytest.mark.parametrize("method", [name for name in cylbo.METHODS if name != "default"])
@pytest.mark.parametrize("name", ["max_suggest_seconds", "max_memory"])
def test_methods_that_sample_have_no_budget(name, method):
    with pytest.raises(ValueError, match=rf"{name} needs a method that fits.*'default'; '{method.replace('+', '.')}'"):
        cylbo.Optimizer([(0, 1)], method=method, **{name: 1.0})


@pytest.mark.parametrize("seconds", [math.inf, 1e308, 10**9, np.float32(5.0), np.int64(5)])
@pytest.mark.parametrize("memory", [math.inf, 1e308, 2**40, np.float32(1e9), None])
def test_a_budget_may_be_any_positive_number(clock, tmp_path, seconds, memory):
    opt = cylbo.Optimizer(
        [(0, 1)] * 2, seed=0, method=CHEAP, max_suggest_seconds=seconds, max_memory=memory, storage=tmp_path / "run.db"
    )
    with opt:
        for i in range(4):
            told(opt, opt.ask(), i)
    assert opt.trials[-1].suggestion.to_json().items() >= {"points": 3, "fit_points": 3, "candidates": 1.0}.items()


def test_a_budget_of_another_precision_can_be_stored(clock, tmp_path):
    options = {"seed": 0, "method": CHEAP, "max_suggest_seconds": np.float32(1e-6)}
    with cylbo.Optimizer([(0, 1)] * 2, **options, storage=tmp_path / "run.db") as opt:
        for i in range(3):
            told(opt, opt.ask(), i)
    # 32 + 5 * 8 + 2 candidates, each a prediction from two data, in 15 percent of the time
    share = 0.15 * 1e-6 / (74 * COST.candidate * (2 / 300) ** 2)
    assert 0.02 < share < 1.0
    assert cylbo.load(tmp_path / "run.db").trials[2].suggestion.candidates == pytest.approx(share, rel=1e-6)


# ---- memory


def peak_of_an_ask(max_memory):
    """Bytes beyond what was there before, and the trial; with 800 data in 100 dimensions."""
    x = rng().uniform(-1.0, 1.0, (800, 100))
    y = np.sin(5.0 * x).sum(-1) + ((x - 0.3) ** 2).sum(-1)
    # As many candidates as the default has, and as few steps as show what one needs
    method = dataclasses.replace(CHEAP, n_sobol=500, n_spray=200, fit_steps=1, max_steps=1)
    opt = cylbo.Optimizer([(-1, 1)] * 100, seed=0, method=method, x0=x, y0=y, noisy=False, max_memory=max_memory)
    opt.tell(opt.ask(), 0.0)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        trial = opt.ask()
        return tracemalloc.get_traced_memory()[1] - before, trial
    finally:
        tracemalloc.stop()


def test_an_ask_keeps_to_its_bytes():
    peak, trial = peak_of_an_ask(40e6)
    assert peak < 40e6
    assert trial.origin == "model"
    assert 50 < trial.suggestion.points < 801
    unlimited, trial = peak_of_an_ask(None)
    assert unlimited > 40e6  # or there was nothing to keep to
    assert not PLANNED & set(trial.suggestion.to_json())


# ---- what a run is a function of


def bits(trials):
    return [(trial.x.tobytes(), trial.origin, trial.suggestion.to_json()) for trial in trials]


def run(n=9, **options):
    opt = cylbo.Optimizer([(-1, 1)] * 2, seed=3, method=CHEAP, noisy=False, **options)
    for i in range(n):
        told(opt, opt.ask(), i)
    return opt.trials


@pytest.mark.parametrize("budget", [{}, {"max_memory": 1}, {"max_memory": 1e9}], ids=str)
def test_without_a_budget_of_seconds_the_clock_makes_no_difference(monkeypatch, budget):
    runs = []
    for tick in (0.0, 1e6):
        wound(monkeypatch, tick)
        runs.append(bits(run(**budget)))
    assert runs[0] == runs[1]
    assert any(origin == "model" for _, origin, _ in runs[0])
    assert all(bool(PLANNED & set(info)) == (bool(budget) and bool(info)) for *_, info in runs[0])


def test_with_seconds_to_spare_the_points_are_those_without_a_budget(clock):
    free, hurried = run(), run(max_suggest_seconds=1e6)
    assert [trial.x.tobytes() for trial in free] == [trial.x.tobytes() for trial in hurried]
    for a, b in zip(free, hurried, strict=True):
        planned = {"points": b.id, "fit_points": b.id, "candidates": 1.0} if b.id >= 2 else {}
        assert b.suggestion.to_json() == {**a.suggestion.to_json(), **planned}


@pytest.mark.parametrize(
    ("budget", "n_sobol", "n_spray"), [(Budget(seconds=1e-9), 1, 1), (Budget(memory=1.0), 32, 8)], ids=str
)
def test_what_there_is_room_for_is_what_is_used(monkeypatch, budget, n_sobol, n_spray):
    wound(monkeypatch)
    monkeypatch.setattr(pace, "FEWEST_POINTS", 7)
    sizes = {"process": [], "fits": [], "candidates": []}

    def noted(room, name, key, sizes_of):
        original = getattr(room, name)
        monkeypatch.setattr(room, name, lambda *a, **o: sizes[key].extend(sizes_of(*a)) or original(*a, **o))

    noted(suggest_room, "_Model", "process", lambda known, *_: [len(known.y)])
    noted(learn_room, "fit", "fits", lambda evidence, *_: [len(evidence.x)])
    noted(suggest_room, "best_starts", "candidates", lambda groups, *_: [len(group) for group in groups])
    method = dataclasses.replace(CHEAP, fit_points=5)
    made = suggest(known(30, exact=True), None, Box([(-1, 1)] * 2).domain, method, rng(), budget=budget)
    assert (made.info["points"], made.info["fit_points"]) == (7, 5)
    assert made.info["candidates"] == (0.02 if n_sobol == 1 else 1.0)
    assert sizes == {"process": [7], "fits": [5] * 3, "candidates": [n_sobol, *[n_spray] * 5, 7]}


def test_an_info_says_what_there_was_room_for(monkeypatch):
    wound(monkeypatch)
    monkeypatch.setattr(pace, "FEWEST_POINTS", 4)
    for trial in run(max_memory=1)[4:]:
        assert (trial.suggestion.points, trial.suggestion.fit_points, trial.suggestion.candidates) == (4, 4, 1.0)
    for trial in run(max_suggest_seconds=1e-9)[4:]:
        assert (trial.suggestion.points, trial.suggestion.fit_points, trial.suggestion.candidates) == (4, 4, 0.02)
