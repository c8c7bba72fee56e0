"""The practical benchmarks: regions that crash are as large as promised, spaces are the same for all, runs are kept."""

import dataclasses
import math

import numpy as np
import pytest
from benchmarks.practical import batches, engineering, failures, mixed, runs
from benchmarks.practical.__main__ import main
from benchmarks.practical.players import Cylbo, box, distributions

import cylbo
from cylbo.bench.functions import problem


def run_of(method="default", seed=0, values=(3.0, None, 1.0), **fields):
    key = runs.Key("failures", "levy, corner", method, 3, seed)
    environment = {"python": "3", "cores": 2, "threads": 1, "versions": {"cylbo": "1"}}
    made = runs.Run(key, list(values), [0.5] * len(values), [], 60.0, environment)
    return dataclasses.replace(made, **fields)


@pytest.mark.parametrize("kind", failures.SCORES)
@pytest.mark.parametrize("near", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_a_third_of_the_box_crashes_but_neither_the_centre_nor_the_optimum(kind, near, seed):
    optimum = problem("levy-shifted", 20, instance=seed).minimizer
    region = failures.region(kind, optimum, np.random.default_rng(seed), near=near)
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


@pytest.mark.parametrize("kind", failures.SCORES)
def test_near_means_a_step_away(kind):
    optimum, rng = problem("levy-shifted", 20, instance=1).minimizer, np.random.default_rng(0)
    near = failures.region(kind, optimum, np.random.default_rng(0), near=True)
    assert 0 < nearest_crash(near, optimum, rng) < 0.2


def test_a_half_space_is_convex_and_a_corner_knows_two_coordinates():
    optimum, rng = np.zeros(20), np.random.default_rng(0)
    x = rng.uniform(-1, 1, (500, 20))
    half = failures.region("half-space", optimum, np.random.default_rng(1))
    inside = x[[half.crashes(p) for p in x]]
    assert all(half.crashes((a + b) / 2) for a, b in zip(inside, inside[::-1], strict=True))
    corner = failures.region("corner", optimum, np.random.default_rng(1))
    matters = [
        any(corner.crashes(np.where(np.arange(20) == i, end, p)) != corner.crashes(p) for p in x for end in (-1, 1))
        for i in range(20)
    ]
    assert sum(matters) == 2


def test_the_same_problem_crashes_in_the_same_places_for_every_method():
    regions = [failures._region(runs.Key("failures", "levy, smooth", m, 200, 3)) for m in failures.METHODS]
    x = np.random.default_rng(0).uniform(-1, 1, (300, 20))
    first, *others = ([region.crashes(p) for p in x] for region in regions)
    assert 0 < sum(first) < 300
    assert all(other == first for other in others)


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


def test_an_engineering_run_ends_with_the_budget_or_the_time(monkeypatch):
    key = runs.Key("engineering", "antenna, 32", "sobol", 9, 3)
    played = engineering._play(key, 60.0)
    assert len(played.values) == len(played.seconds) == 9
    assert played.values[0] == engineering.instance("antenna, 32", 3)(np.zeros(32))
    clock = iter(range(1000))
    monkeypatch.setattr(engineering.time, "process_time", lambda: next(clock))
    stopped = engineering._play(key, 7.5)
    assert 1 < len(stopped.values) < 9
    assert stopped.values == played.values[: len(stopped.values)]


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


class Counter:
    """A player that suggests 0, 1, 2, ... and recommends the lowest that it was told."""

    def __init__(self):
        self.asked, self.told, self.open = 0, [], 0

    def ask(self):
        self.asked += 1
        self.open += 1
        return self.asked - 1

    def tell(self, value):
        self.open -= 1
        self.told.append(value)

    def recommended(self):
        return self.told.index(min(v for v in self.told if v is not None))


def test_a_round_asks_for_all_its_points_before_any_is_evaluated():
    player, open_then = Counter(), []
    played = runs.play(player, lambda i: open_then.append(player.open) or float(-i), 7, 60.0, batch=3)
    assert played.values == [0.0, -1.0, -2.0, -3.0, -4.0, -5.0, -6.0]
    assert open_then == [3, 2, 1, 3, 2, 1, 1]
    assert len(played.seconds) == 7


def test_what_is_recommended_counts_every_ten_evaluations_and_at_the_end():
    played = runs.play(Counter(), lambda i: float(-i), 25, 60.0, truth=lambda i: 100.0 + i)
    assert played.recommended == [(10, 109.0), (20, 119.0), (25, 124.0)]


def test_a_run_out_of_time_keeps_what_it_has(monkeypatch):
    clock = iter(range(1000))
    monkeypatch.setattr(runs.time, "process_time", lambda: next(clock))
    played = runs.play(Counter(), lambda i: float(-i), 25, 10.0, truth=lambda i: float(i))
    assert 0 < len(played.values) < 25
    assert played.recommended[-1] == (len(played.values), float(len(played.values) - 1))


def test_cylbo_is_told_of_crashes_as_failures_or_as_a_penalty():
    failing, punished = Cylbo(box(2), 0), Cylbo(box(2), 0, penalty=1e6)
    for player in (failing, punished):
        for value in (1.0, None):
            player.ask()
            player.tell(value)
    assert [trial.status for trial in failing._opt.trials] == ["done", "failed"]
    assert [trial.value for trial in punished._opt.trials] == [1.0, 1e6]


def test_the_best_so_far_leaves_crashes_out():
    assert run_of(values=(None, 3.0, None, 4.0, 1.0)).best_so_far.tolist() == [math.inf, 3.0, 3.0, 3.0, 1.0]


def test_finished_runs_are_not_made_again_and_stopped_ones_only_if_there_is_more_time(tmp_path):
    path = tmp_path / "runs.jsonl"
    for seed, values in enumerate([(3.0, None, 1.0), (3.0,)]):
        runs.append(run_of(seed=seed, values=values), path)
    made = runs.read(path)
    assert made == [run_of(), run_of(seed=1, values=(3.0,))]
    keys = [run_of(seed=seed).key for seed in range(3)]
    assert runs.missing(keys, made, 60.0) == keys[2:]
    assert runs.missing(keys, made, 61.0) == keys[1:]


def test_a_run_made_again_replaces_the_first(tmp_path):
    for values in ((3.0,), (3.0, 2.0, 1.0)):
        runs.append(run_of(values=values), tmp_path / "runs.jsonl")
    assert [run.values for run in runs.read(tmp_path / "runs.jsonl")] == [[3.0, 2.0, 1.0]]


def test_the_ratio_of_batches_is_the_geometric_mean_over_common_seeds():
    def runs_of(method, regrets):
        return [
            run_of(
                key=runs.Key("batches", "levy-shifted", method, 2, seed),
                values=(1e3, problem("levy-shifted", 20, instance=seed).minimum + regret),
            )
            for seed, regret in enumerate(regrets)
        ]

    alone = runs_of("q = 1", [2.0, 4.0, 1e-9])
    assert batches._ratio(runs_of("q = 8", [4.0, 32.0]), alone, 2) == pytest.approx(4.0)
    assert batches._ratio(runs_of("q = 8", [2.0, 4.0, 1e-7]), alone, 2) == pytest.approx(1.0)
    assert math.isnan(batches._ratio([], alone, 2))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mixed", "--seeds", "0"], "expected an integer of at least 1, got 0"),
        (["noise", "--jobs", "-1"], "expected an integer of at least 1, got -1"),
        (["mixed", "--problems", "nosuch"], "invalid choice: 'nosuch'"),
    ],
)
def test_mistakes_on_the_command_line_are_explained(words, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["practical", *words])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code
    assert message in f"{stopped.value.code} {capsys.readouterr().err}"
    assert not list(tmp_path.iterdir())
