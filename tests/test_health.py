"""The report on a search: its numbers against brute force, its warnings where they belong and nowhere else."""

import dataclasses
import math

import numpy as np
import pytest
import scipy.stats

import cylbo
from cylbo.methods import DEFAULT
from cylbo.model.beliefs import Form
from cylbo.record.trial import Trial
from cylbo.run.health import Health, examined
from cylbo.search.data import Known
from cylbo.search.learn import Fits
from cylbo.space.box import Box
from cylbo.space.named import Frame
from test_fit import drawn, naive_correlation, naive_model, naive_unit

QUICK = {"n_sobol": 64, "n_spray": 20, "sweeps": 2, "first_sweeps": 3, "max_steps": 6, "fit_steps": 6, "warm_steps": 2}
METHODS = {name: dataclasses.replace(config, **QUICK) for name, config in cylbo.METHODS.items()}
CHEAP = METHODS["default"]
PLAIN, FULL = Form(), Form(stretched=True, effects=True)
BOX = [(-1.0, 3.0), (10.0, 20.0)]
OF_THE_SEARCH = ("on_bounds", "radius", "displacement", "chance")
OF_THE_MODEL = ("explained", "calibration", "within_90", "noise")
NAMES = [field.name for field in dataclasses.fields(Health)]


def make(bounds=BOX, method=CHEAP, **options):
    return cylbo.Optimizer(bounds, seed=0, method=method, **options)


def wavy(x):
    return float(np.sin(2.0 * x[0]) + (0.1 * (x[1] - 14.0)) ** 2)


def played(opt, n, fun=wavy):
    for _ in range(n):
        trial = opt.ask()
        opt.tell(trial, fun(trial.x))
    return opt


def is_unknown(health, names):
    return all(math.isnan(getattr(health, name)) for name in names)


def check_readable(health):
    text = str(health)
    lines = text.splitlines()
    assert lines[0].startswith("evaluations ")
    assert "nan" not in text
    assert all(len(line) < 160 for line in lines)
    assert [line[2:] for line in lines if line.startswith("! ")] == list(health.warnings)
    assert all(f"{name}=" in repr(health) for name in NAMES)


# ---- while there is little to say


def test_before_anything_was_asked():
    health = make().health()
    assert (health.evaluations, health.failed, health.open, health.origin) == (0, 0, 0, "")
    assert health.origins == {}
    assert is_unknown(health, OF_THE_SEARCH + OF_THE_MODEL)
    assert not health.flat
    assert not health.better_than_mean
    assert health.warnings == ()
    assert str(health).splitlines() == [
        "evaluations      0 with a value, 0 failed, 0 open",
        "last suggestion  none yet",
        "on the bounds    ? of the numbers",
        "radius           ? of the way to the farthest corner",
        "climb            ? half-widths of the box",
    ]
    check_readable(health)


def test_after_one_evaluation():
    opt = played(make(), 1)
    health = opt.health()
    assert (health.evaluations, health.failed, health.open, health.origin) == (1, 0, 0, "center")
    assert health.origins == {"center": 1}
    assert is_unknown(health, OF_THE_SEARCH + OF_THE_MODEL)
    assert health.warnings == ()
    check_readable(health)
    opt.ask()
    assert (opt.health().open, opt.health().origin) == (1, "random")


def test_with_nothing_but_failures():
    opt = make()
    for i in range(6):
        opt.fail(opt.ask(), "diverged")
        health = opt.health()
        assert (health.evaluations, health.failed) == (0, i + 1)
        assert is_unknown(health, OF_THE_MODEL)
        [warning] = health.warnings
        assert f"{i + 1} of the last {i + 1} evaluations failed" in warning
        check_readable(health)


def test_with_nothing_but_earlier_evaluations():
    x0 = np.random.default_rng(0).uniform(*np.transpose(BOX), (15, 2))
    health = make(x0=x0, y0=[wavy(x) for x in x0]).health()
    assert (health.evaluations, health.origin, health.origins) == (15, "", {"told": 15})
    assert is_unknown(health, OF_THE_SEARCH + OF_THE_MODEL)
    assert health.warnings == ()
    check_readable(health)


def test_points_that_wait_to_be_asked_are_not_counted():
    opt = make(x0=[[0.0, 11.0], [1.0, 12.0]])
    assert opt.health().evaluations == 0
    opt.ask()
    assert (opt.health().open, opt.health().origin) == (1, "given")


def test_the_model_is_judged_from_ten_evaluations_on():
    opt = played(make(), 9)
    opt.ask()
    assert is_unknown(opt.health(), OF_THE_MODEL)
    opt.tell(9, wavy(opt.trials[9].x))
    health = opt.health()
    assert not any(math.isnan(getattr(health, name)) for name in OF_THE_MODEL)
    check_readable(health)


def test_equal_values_leave_nothing_to_judge():
    opt = played(make(), 12, lambda x: 3.0)
    assert is_unknown(opt.health(), OF_THE_MODEL)
    check_readable(opt.health())


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_report(name):
    health = played(make(method=METHODS[name]), 12).health()
    assert health.evaluations == 12
    assert health.origins == {"center": 1, "random": 1, "model": 10}
    assert not is_unknown(health, ["on_bounds"])
    assert 0.0 <= health.radius <= 1.0
    assert health.displacement >= 0.0
    assert is_unknown(health, OF_THE_MODEL) == (name != "default")  # samples of hyperparameters are not judged
    assert not any("predicts" in warning for warning in health.warnings) or name == "default"
    check_readable(health)


def test_a_search_that_goes_well_has_no_warnings():
    health = played(make(method="default"), 16).health()
    assert health.warnings == ()
    assert health.better_than_mean
    assert 0.5 < health.explained <= 1.0
    check_readable(health)


def test_a_look_at_its_health_changes_nothing():
    looked, calm = make(), make()
    for _ in range(12):
        points = []
        for opt in (looked, calm):
            trial = opt.ask()
            points.append(trial.x.tobytes())
            opt.tell(trial, wavy(trial.x))
        assert points[0] == points[1]
        before = np.geterr()
        looked.health()
        assert np.geterr() == before


# ---- the model: each value predicted from the others


def naive_left_out(x, y, theta, form, noise=None):
    """Errors and standard deviations, of the values as the model sees them: for each value the process of theta is
    conditioned on all the others, with the mean and the amplitude that are most likely given them all.
    """
    n, strength = len(y), math.exp(theta[2])
    gap = (y - y.min()) / naive_unit(y)
    t = np.log(1.0 + strength * gap) / strength
    amplitude = None
    if noise is not None:  # then the amplitude is a hyperparameter, behind those of the effects
        at = 3 + 2 * form.effects
        amplitude, theta = math.exp(theta[at]), np.delete(theta, at)
    R = naive_correlation(naive_model(theta, x.shape[1], form), x)
    if noise is not None:
        slope = 1.0 / (1.0 + strength * gap) / naive_unit(y)
        R += np.diag((slope * noise) ** 2 / amplitude)
    u, v = np.linalg.solve(R, np.ones(n)), np.linalg.solve(R, t)
    m = v.sum() / u.sum()
    amplitude = amplitude or (t - m) @ (v - m * u) / n
    errors, sds = [], []
    for i in range(n):
        rest = np.arange(n) != i
        weights = np.linalg.solve(R[rest][:, rest], R[rest, i])
        errors.append(t[i] - m - weights @ (t[rest] - m))
        sds.append(math.sqrt(amplitude * (R[i, i] - weights @ R[rest, i])))
    return t, np.array(errors), np.array(sds), math.exp(theta[1]) * amplitude


def check_judgement(health, x, y, theta, form, noise=None):
    t, errors, sds, noise_in_t = naive_left_out(x, y, theta, form, noise)
    explained = 1.0 - (errors**2).sum() / ((t - t.mean()) ** 2).sum()
    z = errors / sds
    assert health.explained == pytest.approx(explained, rel=1e-5, abs=1e-6)
    assert health.calibration == pytest.approx(math.sqrt((z**2).mean()), rel=1e-5)
    assert health.within_90 == pytest.approx((abs(z) <= scipy.stats.norm.ppf(0.95)).mean())
    assert health.better_than_mean == (explained > 0.0)
    # A deviation of the noise above the best value, uncompressed
    strength = math.exp(theta[2])
    above = naive_unit(y) * (math.exp(strength * math.sqrt(noise_in_t)) - 1.0) / strength
    assert health.noise == pytest.approx(above, rel=1e-6)


def in_box(opt):
    """All points with a value in the box [-1, 1]^d, about its middle."""
    low, high = np.transpose(BOX)
    return 2.0 * (np.array([trial.x for trial in opt.history.of("done")]) - low) / (high - low) - 1.0


@pytest.mark.parametrize("form", [PLAIN, Form(stretched=True), FULL], ids=str)
@pytest.mark.parametrize("center", [None, [2.5, 11.0]])
@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_the_model_is_judged_by_leaving_out_one_value_after_the_other(form, center, direction):
    method = dataclasses.replace(CHEAP, forms=(form,))
    sign = 1.0 if direction == "minimize" else -1.0
    opt = make(method=method, center=center, direction=direction)
    rng = np.random.default_rng(0)
    played(opt, 14, lambda x: sign * (wavy(x) + 0.05 * rng.standard_normal()))
    y = sign * np.array([trial.value for trial in opt.trials])
    check_judgement(opt.health(), in_box(opt), y, opt._memory.state.thetas[form], form)


@pytest.mark.parametrize("form", [PLAIN, FULL], ids=str)
def test_noise_that_was_told_is_part_of_what_is_predicted(form):
    opt = make(method=dataclasses.replace(CHEAP, forms=(form,), repeats=False))
    stds = []
    for i in range(14):
        stds.append(0.02 * (i % 4))
        trial = opt.ask()
        opt.tell(trial, wavy(trial.x), std=stds[-1])
    y = np.array([trial.value for trial in opt.trials])
    check_judgement(opt.health(), in_box(opt), y, opt._memory.state.thetas[form], form, noise=np.array(stds))


def test_the_model_is_not_judged_when_noise_was_told_since_its_last_fit():
    opt = played(make(), 12)
    assert not is_unknown(opt.health(), OF_THE_MODEL)
    opt.tell(opt.ask(), 1.0, std=0.1)
    assert is_unknown(opt.health(), OF_THE_MODEL)
    check_readable(opt.health())


def known(x, y, **more):
    return Known(x=x, y=y, pending=x[:0], failed=x[:0], **more)


def judged(x, y, theta, **more):
    """The report on a model with these hyperparameters."""
    state = Fits({PLAIN: np.array(theta)}, PLAIN, len(y), len(y), told_noise="noise" in more)
    return examined([], known(x, y, **more), state, Box([(-1, 1)] * x.shape[1]), DEFAULT)


def test_calibration_is_about_one_for_values_that_the_model_drew():
    reports = []
    for seed in range(20):
        x, y = drawn(seed, n=60, lengthscale=0.5, noise=0.01)
        reports.append(judged(x, y, [math.log(0.5), math.log(0.01), -5.0]))  # hardly compressed
    # The mean square of sixty standard normal errors, twenty times over, is 1 up to sqrt(2 / 1200), if not more since
    # they are correlated
    squares = np.array([health.calibration**2 for health in reports])
    assert squares.mean() == pytest.approx(1.0, abs=0.15)
    assert np.mean([health.within_90 for health in reports]) == pytest.approx(0.9, abs=0.03)
    assert np.mean([health.noise for health in reports]) == pytest.approx(0.1, rel=0.15)
    assert all(health.explained > 0.5 for health in reports)
    assert all(health.warnings == () for health in reports)


@pytest.mark.parametrize("seed", range(3))
def test_a_model_that_was_fitted_to_its_own_kind_is_honest(seed):
    x, y = drawn(seed, n=60, lengthscale=0.5, noise=0.01)
    opt = make([(-1, 1)] * 2, x0=x, y0=y, method="default", noisy=True)
    opt.tell(opt.ask(), float(y.mean()))
    opt.ask()
    health = opt.health()
    assert 0.7 < health.calibration < 1.4
    assert 0.8 <= health.within_90 <= 1.0
    assert health.better_than_mean
    assert not any("errors of prediction" in warning for warning in health.warnings)


@pytest.mark.parametrize(("log_amplitude", "too_sure"), [(-9.0, True), (6.0, False)])
def test_a_model_that_is_too_sure_of_itself_is_called_so(log_amplitude, too_sure):
    # With noise that was told the amplitude is one of theta
    x, y = drawn(0, n=60, lengthscale=0.5)
    theta = [math.log(0.5), math.log(1e-3), -5.0, log_amplitude]
    health = judged(x, y, theta, noise=np.full(60, 1e-6))
    assert health.calibration > 2.0 if too_sure else health.calibration < 0.5
    assert health.warnings == ("errors of prediction are much more than the model expects.",) * too_sure


def test_a_model_of_pure_noise_is_no_better_than_the_mean():
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-1.0, 1.0, (40, 2)), rng.standard_normal(40)
    for_itself = judged(x, y, [math.log(1e-2), math.log(1e-3), -5.0])  # every value alone: only the mean is left
    assert for_itself.explained == pytest.approx(0.0, abs=0.01)
    from_neighbours = judged(x, y, [math.log(0.3), math.log(1e-3), -5.0])  # which say nothing
    assert from_neighbours.explained < -0.1
    assert not from_neighbours.better_than_mean
    assert any("predicts no better than the mean of the values" in warning for warning in from_neighbours.warnings)


# ---- the search


def trials_at(x, **fields):
    """One suggestion of the model per point."""
    said = {"acquisition": 0.0, "displacement": 0.5, "spread": 1.0}
    said = cylbo.Suggestion(**fields.pop("said", said))
    common = {"value": 1.0, "status": "done", "suggestion": said, **fields}
    return [Trial(i, np.array(point, dtype=float), **common) for i, point in enumerate(x)]


def report(trials, space=None, **more):
    space = space or Box(BOX)
    trials = [dataclasses.replace(trial, id=i) for i, trial in enumerate(trials)]

    def of(status):
        points = [trial.x for trial in trials if trial.status == status]
        return space.to_ball(np.array(points).reshape(len(points), space.dim))

    done = of("done")
    data = Known(x=done, y=np.ones(len(done)), pending=of("open"), failed=of("failed"), **more)
    return examined(trials, data, None, space, DEFAULT)


INSIDE, CORNER, EDGE = [1.5, 14.0], [3.0, 10.0], [-1.0, 14.0]


@pytest.mark.parametrize(
    ("points", "share"),
    [
        ([INSIDE] * 4, 0.0),
        ([EDGE], 0.5),
        ([CORNER] * 3, 1.0),
        ([CORNER, INSIDE, INSIDE, EDGE], 3 / 8),
        ([CORNER, CORNER, EDGE, INSIDE], 5 / 8),
        ([[3.0 - 1e-8, 14.0]], 0.0),
        ([[3.0 - 1e-10, 14.0]], 0.5),  # rounding
    ],
)
def test_numbers_on_their_bounds_are_counted(points, share):
    health = report(trials_at(points))
    assert health.on_bounds == pytest.approx(share)
    warned = ["most numbers are proposed on their bounds: widen the bounds if you can."] if share > 0.5 else []
    assert list(health.warnings) == warned
    check_readable(health)


MIXED = cylbo.Space(
    r=cylbo.Real(1e-12, 1.0, log=True), k=cylbo.Integer(2, 6), c=cylbo.Categorical(["a", "b", "c"]), b=cylbo.Boolean()
)


@pytest.mark.parametrize(
    ("r", "k", "share"),
    [(1e-3, 4, 0.0), (1e-11, 3, 0.0), (1e-12, 5, 0.5), (1.0, 3, 0.5), (0.5, 2, 0.5), (0.5, 6, 0.5), (1.0, 6, 1.0)],
)
def test_categories_have_no_bounds_and_integers_have(r, k, share):
    for c in (0.0, 1.0, 2.0):
        for center in (None, {"r": 1e-4, "k": 6, "c": "b", "b": True}):
            health = report(trials_at([[r, k, c, 1.0]] * 2), Frame(MIXED, center))
            assert health.on_bounds == share


def test_categories_alone_are_never_on_their_bounds():
    space = cylbo.Space(c=cylbo.Categorical(["a", "b", "c"]), b=cylbo.Boolean())
    health = report(trials_at([[0.0, 1.0], [2.0, 0.0]]), Frame(space))
    assert math.isnan(health.on_bounds)
    assert health.warnings == ()
    check_readable(health)


@pytest.mark.parametrize(
    ("center", "points", "radius"),
    [
        (None, [[1.0, 15.0]], 0.0),
        (None, [[3.0, 20.0]], 1.0),
        (None, [[1.0, 15.0], [3.0, 20.0], [-1.0, 10.0]], 2 / 3),
        (None, [[3.0, 15.0]], math.sqrt(0.5)),  # the middle of a side of the square
        ([3.0, 20.0], [[-1.0, 10.0]], 1.0),
        ([3.0, 20.0], [[1.0, 15.0]], 0.5),
    ],
)
def test_the_radius_is_a_share_of_the_way_to_the_farthest_corner(center, points, radius):
    assert report(trials_at(points), Box(BOX, center)).radius == pytest.approx(radius, abs=1e-12)


def test_only_the_last_ten_suggestions_of_a_model_count():
    old = trials_at([CORNER] * 5, said={"acquisition": 0.0, "displacement": 100.0, "spread": 1.0, "probability": 0.1})
    given = trials_at([CORNER] * 3, said={}, origin="given")
    new = trials_at([INSIDE] * 10, said={"acquisition": 0.0, "displacement": 0.25, "spread": 1.0, "probability": 0.5})
    health = report([*old, *new, *given])
    assert (health.on_bounds, health.displacement, health.chance) == (0.0, 0.25, 0.5)
    assert health.origin == "given"
    assert "chance           50 % to give a value that counts" in str(health)
    health = report([*old, *new[1:]])
    assert health.displacement == pytest.approx(0.9 * 0.25 + 0.1 * 100.0)
    assert health.chance == pytest.approx(0.9 * 0.5 + 0.1 * 0.1)


@pytest.mark.parametrize(
    ("spreads", "moves", "flat"),
    [
        ([0.0, 0.0], [0.0, 0.0], True),
        ([1e-12, 0.0], [0.0, 1e-12], True),
        ([0.0, 1e-3], [0.0, 0.0], False),
        ([0.0, 0.0], [1e-3, 0.0], False),
        ([None, None], [None, None], False),  # climbs that ran out of time say nothing
        ([None, 0.0], [None, 0.0], True),
    ],
)
def test_an_acquisition_is_flat_if_it_was_so_wherever_it_was_looked_at(spreads, moves, flat):
    infos = [
        {"acquisition": -5.0} | ({} if spread is None else {"spread": spread, "displacement": move})
        for spread, move in zip(spreads, moves, strict=True)
    ]
    health = report([trials_at([INSIDE], said=said)[0] for said in infos])
    assert health.flat is flat
    assert [warning.split(":")[0] for warning in health.warnings] == ["the acquisition is flat"] * flat
    assert (", flat" in str(health)) == flat
    check_readable(health)


@pytest.mark.parametrize("origin", ["last hyperparameters", "space-filling"])
def test_points_that_came_without_a_model_are_told(origin):
    fallen, fine = trials_at([INSIDE] * 2, origin=origin, said={}), trials_at([INSIDE] * 9)
    [warning] = report([*fallen, *fine[:8]]).warnings
    assert warning.startswith(f"2 of the last 10 points came without a working model ({origin})")
    [warning] = report([*fallen, *fine]).warnings
    assert warning.startswith("1 of the last 10 points")
    assert report([*fallen, *fine, *fine]).warnings == ()


@pytest.mark.parametrize("origin", ["center", "random", "given", "model", "repeated"])
def test_other_points_came_as_they_should(origin):
    assert report(trials_at([INSIDE] * 3, origin=origin)).warnings == ()


def test_while_random_points_cover_the_box_it_is_told_why():
    covering, fine = trials_at([INSIDE] * 3, origin="covering", said={}), trials_at([INSIDE])
    [warning] = report(covering).warnings
    assert "much worse than it predicted" in warning
    assert report([*covering, *fine]).warnings == ()


@pytest.mark.parametrize(("kept", "warned"), [(0, False), (5, False), (6, True), (10, True)])
def test_a_search_that_noise_keeps_near_a_point_is_told(kept, warned):
    near = trials_at([INSIDE] * kept, said={"acquisition": -1.0, "trust_radius": 0.3})
    warnings = report([*near, *trials_at([INSIDE] * (10 - kept))]).warnings
    assert ["noise hides most" in warning for warning in warnings] == [True] * warned


@pytest.mark.parametrize(("failed", "warned"), [(0, False), (2, False), (3, True), (10, True)])
def test_many_failures_of_late_are_told(failed, warned):
    bad = trials_at([INSIDE] * 10, status="failed", value=math.nan)
    good = trials_at([INSIDE] * 10)
    health = report([*bad, *bad[:failed], *good[failed:]])
    assert health.failed == 10 + failed
    assert (
        list(health.warnings)
        == [f"{failed} of the last 10 evaluations failed: give bounds or constraints if you know them."] * warned
    )


@pytest.mark.parametrize(
    ("constraints", "warned"),
    [
        ([[1.0, -1.0], [-1.0, 2.0], [0.5, 0.5]], True),
        ([[1.0, -1.0], [-1.0, 0.0], [0.5, 0.5]], False),
        ([[np.nan, np.nan], [1.0, 1.0], [1.0, 1.0]], False),  # it was not told of the first
        ([[], [], []], False),
    ],
)
def test_a_search_that_found_nothing_allowed_is_told_so(constraints, warned):
    health = report(trials_at([INSIDE] * 3), constraints=np.array(constraints))
    assert list(health.warnings) == ["no point so far keeps every constraint."] * warned


def test_constraints_and_failures_have_a_chance():
    opt = make()
    for i in range(12):
        trial = opt.ask()
        if i in (2, 5):
            opt.fail(trial)
        else:
            opt.tell(trial, wavy(trial.x), constraints=[float(trial.x[0] - 1.5)])
    health = opt.health()
    assert (health.evaluations, health.failed) == (10, 2)
    assert 0.0 < health.chance <= 1.0
    assert not is_unknown(health, OF_THE_MODEL)
    check_readable(health)


# ---- either direction, and spaces with names


def test_to_maximise_is_to_minimise_the_negative():
    reports = []
    for sign, direction in ((1.0, "minimize"), (-1.0, "maximize")):
        opt = played(make(direction=direction), 12, lambda x, sign=sign: sign * wavy(x))
        reports.append(opt.health())
    assert repr(reports[0]) == repr(reports[1])
    assert reports[0].noise > 0.0


def test_a_space_with_names_has_a_report():
    opt = make(MIXED)
    for i in range(opt.method.n_first_discrete + 5):
        health = opt.health()
        assert health.evaluations == i
        check_readable(health)
        trial = opt.ask()
        opt.tell(trial, abs(math.log(trial.params["r"]) + 9.0) + trial.params["k"] + (trial.params["c"] == "b"))
    health = opt.health()
    assert not is_unknown(health, ["on_bounds", "radius", "displacement", *OF_THE_MODEL])
    assert 0.0 <= health.radius <= 1.0
