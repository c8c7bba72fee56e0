"""The practical problems: regions that crash are as large as promised, spaces are the same for all, noise is shared."""

import math

import numpy as np
import pytest

import cylbo
from cylbo.bench import problems
from cylbo.bench.functions import problem
from cylbo.bench.methods import METHODS
from cylbo.bench.methods.optuna import distributions
from cylbo.bench.objective import Objective
from cylbo.bench.problems import crashes, engineering, mixed
from cylbo.bench.suites import ALL


@pytest.mark.parametrize("kind", crashes.SCORES)
@pytest.mark.parametrize("near", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_a_third_of_the_box_crashes_but_neither_the_centre_nor_the_optimum(kind, near, seed):
    optimum = problem("levy-shifted", 20, instance=seed).minimizer
    region = crashes.region(kind, optimum, np.random.default_rng(seed), near=near)
    fresh = np.random.default_rng(99).uniform(-1, 1, (8_000, 20))
    assert np.mean([region.crashes(x) for x in fresh]) == pytest.approx(1 / 3, abs=0.02)
    assert not region.crashes(np.zeros(20))
    assert not region.crashes(optimum)


def nearest_crash(region, optimum, rng):
    """The distance, along the axes and random directions, at which the region is met."""
    directions = np.vstack([np.eye(20), -np.eye(20), rng.standard_normal((500, 20))])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    steps = np.linspace(0.0, 2.0, 201)
    return next((r for r in steps if any(region.crashes(optimum + r * d) for d in directions)), math.inf)


@pytest.mark.parametrize("kind", crashes.SCORES)
def test_near_means_a_step_away(kind):
    optimum, rng = problem("levy-shifted", 20, instance=1).minimizer, np.random.default_rng(0)
    near = crashes.region(kind, optimum, np.random.default_rng(0), near=True)
    assert 0 < nearest_crash(near, optimum, rng) < 0.2


def test_a_half_space_is_convex_and_a_corner_knows_two_coordinates():
    optimum, rng = np.zeros(20), np.random.default_rng(0)
    x = rng.uniform(-1, 1, (500, 20))
    half = crashes.region("half-space", optimum, np.random.default_rng(1))
    inside = x[[half.crashes(p) for p in x]]
    assert all(half.crashes((a + b) / 2) for a, b in zip(inside, inside[::-1], strict=True))
    corner = crashes.region("corner", optimum, np.random.default_rng(1))
    matters = [
        any(corner.crashes(np.where(np.arange(20) == i, end, p)) != corner.crashes(p) for p in x for end in (-1, 1))
        for i in range(20)
    ]
    assert sum(matters) == 2


def test_the_same_problem_crashes_in_the_same_places_for_every_method():
    x = np.random.default_rng(0).uniform(-1, 1, (300, 20))
    first, again, other = ([problems.task("levy, smooth", 20, seed).evaluate(p) for p in x] for seed in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert 0 < np.isnan(first).sum() < 300
    assert (np.isnan(first) != np.isnan(other)).any()
    whole = problem("levy-shifted", 20, instance=3)
    assert all(value == whole(p) for value, p in zip(first, x, strict=True) if not math.isnan(value))


def test_noise_is_the_same_for_every_method_and_has_the_standard_deviation_of_the_name():
    x = np.zeros(20)
    first, again, large = (problems.task(f"hartmann6-shifted, sd {sd}", 20, 2) for sd in (0.1, 0.1, 0.5))
    values, repeated, noisier = (np.array([task.evaluate(x) for _ in range(2000)]) for task in (first, again, large))
    np.testing.assert_array_equal(values, repeated)
    truth = problem("hartmann6-shifted", 20, instance=2)(x)
    assert first.truth(x) == truth
    assert (first.noise, large.noise) == (0.1, 0.5)
    # The standard error of a standard deviation is sd / sqrt(2 n)
    assert np.std(values - truth) == pytest.approx(0.1, abs=4 * 0.1 / np.sqrt(4000))
    np.testing.assert_allclose(noisier - truth, 5 * (values - truth), rtol=1e-9)


@pytest.mark.parametrize("name", engineering.PROBLEMS)
def test_an_engineering_problem_is_finite_deterministic_and_another_for_every_seed(name):
    if name.startswith("lasso"):
        pytest.importorskip("sklearn")
    points = np.random.default_rng(0).uniform(-1, 1, (5, engineering.PROBLEMS[name].dim))
    first, again, other = ([engineering.instance(name, seed)(x) for x in points] for seed in (0, 0, 1))
    assert first == again
    assert np.isfinite(first).all()
    assert len(set(first)) == 5
    assert first != other


def drawn(make, seed=0):
    """The function, and a generator that draws what it was made from."""
    return make(np.random.default_rng(seed)), np.random.default_rng(seed)


def test_a_rover_that_stands_still_pays_for_its_ends_alone():
    cost, _ = drawn(engineering.rover)
    assert cost(np.zeros(60)) == pytest.approx(10 * 4 * 0.45)
    diagonal = np.repeat(np.linspace(-0.9, 0.9, 30), 2)  # the shortest way there, through whatever lies on it
    assert math.hypot(0.9, 0.9) * 0.05 <= cost(diagonal) + 1e-9 <= math.hypot(0.9, 0.9) * 20.05


def test_a_lasso_and_a_network_that_say_nothing_leave_the_target_unexplained():
    pytest.importorskip("sklearn")
    error, rng = drawn(engineering.lasso)
    features, coefficients = rng.standard_normal((120, 60)), np.zeros(60)
    coefficients[rng.permutation(60)[:6]] = 2 * rng.standard_normal(6)
    target = features @ coefficients + rng.standard_normal(120)
    assert error(np.ones(60)) == pytest.approx(np.mean(target**2))
    error, rng = drawn(engineering.network)
    u = rng.uniform(-1, 1, (150, 5))
    assert error(np.zeros(71)) == pytest.approx(
        np.mean((np.sin(3 * u[:, 0]) + u[:, 1] * u[:, 2] + abs(u[:, 3]) / 2) ** 2)
    )


def test_the_rod_is_explained_by_what_it_is_made_of():
    error, rng = drawn(engineering.rod)
    walk = np.cumsum(0.25 * rng.standard_normal(30))
    true = np.clip(walk - walk.mean(), -1, 1)
    assert error(true) == pytest.approx(0.0, abs=1e-12)
    assert error(true + 0.01) > 1.0


def test_a_pole_without_force_hangs():
    deviation, _ = drawn(engineering.pole)
    assert 1.97 < deviation(np.zeros(22)) <= 2.0


def test_antennas_in_phase_send_all_of_it_ahead():
    lobe, rng = drawn(engineering.antenna)
    toward, place = rng.uniform(-0.5, 0.5), 0.5 * np.arange(16) + 0.1 * rng.standard_normal(16)
    phases = (-2 * toward * place + 1) % 2 - 1
    aligned = lobe(np.concatenate([np.zeros(16), phases]))
    assert -20 < aligned < -10  # a uniform array's side lobes are 13 decibels down
    assert lobe(np.concatenate([np.zeros(16), -phases])) > 0


def test_light_passes_as_fresnel_and_a_quarter_wave_mirror_have_it():
    wavelength = np.array([0.6])
    assert engineering.transmitted(np.empty(0), wavelength) == pytest.approx(1 - (0.52 / 2.52) ** 2)
    for pairs in (1, 3):
        mirror = np.tile([0.6 / 4 / 2.3, 0.6 / 4 / 1.45], pairs)
        admittance = (2.3 / 1.45) ** (2 * pairs) * 1.52
        assert engineering.transmitted(mirror, wavelength) == pytest.approx(
            1 - ((1 - admittance) / (1 + admittance)) ** 2
        )


def test_atoms_attract_each_other_pair_by_pair():
    energy, rng = drawn(engineering.atoms)
    sizes, x = rng.uniform(0.8, 1.2, 10), np.random.default_rng(1).uniform(-1, 1, 30)
    total, place = 0.0, 2 * x.reshape(10, 3)
    for i in range(10):
        for j in range(i):
            r = max(math.dist(place[i], place[j]) / ((sizes[i] + sizes[j]) / 2), 0.7)
            total += 4 * (r**-12 - r**-6)
    assert energy(x) == pytest.approx(total)


def test_a_truss_carries_its_loads():
    cost, rng = drawn(engineering.truss)
    middle = -rng.uniform(0.2, 0.8)
    x = np.random.default_rng(1).uniform(-1, 1, 24)
    bars = [(2 * i + a, 2 * i + 2 + b) for i in range(6) for a, b in ((0, 0), (1, 1), (0, 1), (1, 0))]
    areas = dict(zip(bars, 10**x, strict=True)) | {(2 * i, 2 * i + 1): 1.0 for i in range(1, 7)}
    stiffness, load, place = np.zeros((28, 28)), np.zeros(28), [(i // 2, i % 2) for i in range(14)]
    for (a, b), area in areas.items():
        along = np.subtract(place[b], place[a]) / math.dist(place[a], place[b])
        block = 100 * area / math.dist(place[a], place[b]) * np.outer(along, along)
        for at, to, sign in ((a, a, 1), (b, b, 1), (a, b, -1), (b, a, -1)):
            stiffness[2 * at : 2 * at + 2, 2 * to : 2 * to + 2] += sign * block
    load[2 * 12 + 1], load[2 * 6 + 1] = -1.0, middle  # the lower nodes of the end and of the middle
    moved = np.concatenate([np.zeros(4), np.linalg.solve(stiffness[4:, 4:], load[4:])]).reshape(14, 2)
    volume = overload = 0.0
    for a, b in bars:
        length, along = math.dist(place[a], place[b]), np.subtract(place[b], place[a])
        volume += areas[a, b] * length
        overload += max(abs(100 * (moved[b] - moved[a]) @ along / length**2) - 1.5, 0.0)
    assert cost(x) == pytest.approx(volume + 50 * overload + 100 * max(-moved.min() - 1, 0.0))


@pytest.mark.filterwarnings("ignore")  # of models that do not converge
@pytest.mark.parametrize("name", mixed.PROBLEMS)
def test_a_mixed_problem_is_finite_deterministic_and_not_flat(name):
    tuning, rng = mixed.PROBLEMS[name], np.random.default_rng(0)
    points = [tuning.space.params(u) for u in tuning.space.decode(rng.uniform(-1, 1, (4, tuning.space.dim)))]
    losses = [tuning(params) for params in points]
    assert tuning(points[0]) == losses[0]
    assert all(math.isfinite(loss) and loss > 0 for loss in losses)
    assert len(set(losses)) > 1


def test_optuna_searches_the_same_space():
    pytest.importorskip("optuna")
    for tuning in mixed.PROBLEMS.values():
        theirs = distributions(tuning.space)
        assert list(theirs) == list(tuning.space.parameters)
        rng = np.random.default_rng(0)
        for u in tuning.space.decode(rng.uniform(-1, 1, (50, tuning.space.dim))):
            for name, value in tuning.space.params(u).items():
                assert theirs[name]._contains(theirs[name].to_internal_repr(value))
        for name, ours in tuning.space.parameters.items():
            if isinstance(ours, cylbo.Categorical):
                assert theirs[name].choices == ours.choices
            else:
                assert (theirs[name].low, theirs[name].high, theirs[name].log) == (ours.low, ours.high, ours.log)
                assert isinstance(theirs[name].low, int) == isinstance(ours, cylbo.Integer)


def test_every_problem_of_a_suite_exists_in_its_dimensions_and_can_be_met_by_its_methods():
    for suite in ALL.values():
        for key in suite.keys(seeds=1):
            problems.check_problem(key.problem, key.dim)
            obstacle = METHODS[key.method].obstacle(key.problem, key.batch)
            assert "does not handle" not in obstacle, (key, obstacle)


@pytest.mark.parametrize("name", ["levy, corner", "hartmann6, sd 0.1", "truss, 24", "svm, digits"])
def test_a_practical_problem_knows_its_dimension(name):
    with pytest.raises(ValueError, match=rf"{name} has \d+ dimensions, got 3"):
        problems.task(name, 3, 0)


def test_an_unknown_problem_is_told_with_the_known_ones():
    with pytest.raises(ValueError, match=r"'levy-shifted'.*'truss, 24'.*bbob-f1.*got 'truss'"):
        problems.check_problem("truss", 24)


def test_methods_meet_only_what_they_say_they_can_handle():
    assert METHODS["cma"].obstacle("levy-shifted") == ""
    assert METHODS["cma"].obstacle("levy, corner") == "does not handle crashes"
    assert METHODS["cma"].obstacle("levy-shifted", batch=2) == "does not handle batches"
    assert METHODS["optuna-tpe"].obstacle("hartmann6, sd 0.1") == "does not handle noise"
    assert METHODS["optuna-tpe"].obstacle("svm, digits") == ""


@pytest.mark.filterwarnings("ignore")  # of models that do not converge
@pytest.mark.parametrize("suite", ["noise", "failures", "mixed"])
def test_every_method_of_a_practical_suite_spends_its_budget_from_the_same_start(suite):
    for package in ("optuna", "botorch", "sklearn"):
        pytest.importorskip(package)
    name = ALL[suite].problems[0]
    (dim,) = {key.dim for key in ALL[suite].keys(problems=[name], seeds=1)}
    firsts = []
    for method in ALL[suite].methods:
        objective = Objective(problems.task(name, dim, 0), dim, 24)
        METHODS[method].spend(objective, 0)
        assert len(objective.values) == 24
        if suite == "noise":
            assert [n for n, _ in objective.recommended] == [10, 20, 24]
            best = objective.recommended[-1][1]
            assert best in [problem("hartmann6", 20)(x) for x in objective.points]
        firsts.append(objective.points[0])
    if suite != "mixed":
        assert not np.any(firsts)
    else:
        # Nobody is given a start: cylbo begins at the first of all choices, Optuna at random ones
        assert firsts[0]["kernel"] == "linear"


def test_optuna_and_cylbo_are_told_of_crashes_as_failures_and_one_variant_of_a_penalty(monkeypatch):
    told = []
    optimizer = cylbo.Optimizer

    class Watched(optimizer):
        def fail(self, *args, **more):
            told.append("failed")
            return super().fail(*args, **more)

        def tell(self, trial, value, **more):
            told.append(value)
            return super().tell(trial, value, **more)

    monkeypatch.setattr(cylbo, "Optimizer", Watched)
    crashing = problems.Task(lambda x: math.nan if x.any() else 1.0)
    for name, expected in (("default", "failed"), ("cylbo, told a million", 1e6)):
        METHODS[name].spend(Objective(crashing, 2, 3), 0)
        assert told == [1.0, expected, expected]
        told.clear()
