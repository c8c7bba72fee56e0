"""Runs in a space of named parameters: the frame, ask and tell, the end of a finite space, files."""

import contextlib
import copy
import dataclasses
import itertools
import math
import pickle
import sqlite3
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cylbo
from cylbo import Boolean, Categorical, Integer, Real, Space
from cylbo.errors import NoResultError, SpaceExhaustedError, StorageError
from cylbo.space.named import Frame

QUICK = {"n_sobol": 64, "n_spray": 20, "sweeps": 2, "first_sweeps": 3, "max_steps": 6, "fit_steps": 5, "warm_steps": 2}
CHEAP = dataclasses.replace(cylbo.DEFAULT, **QUICK, n_first_discrete=1)
METHODS = {name: dataclasses.replace(config, **QUICK) for name, config in cylbo.METHODS.items()}

MIXED = Space(r=Real(0.5, 8.0, log=True), k=Integer(-2, 3), c=Categorical(["a", "b", "c"]), w=Integer(0, 99, shape=2))
CENTER = {"r": 1.0, "k": 3, "c": "b", "w": [7, 99]}
FINITE = Space(k=Integer(1, 3), c=Categorical(["a", "b"]), b=Boolean())  # 12 points


def make(space=MIXED, seed=0, method=CHEAP, **options):
    return cylbo.Optimizer(space, seed=seed, method=method, **options)


def plain(params):
    return {name: np.asarray(value).tolist() for name, value in params.items()}


def score(params):
    """Some value for any point of any space."""
    return sum(math.sin(1.0 + i + float(v)) for i, v in enumerate(flat(params)))


def flat(params):
    for value in params.values():
        for v in np.ravel(np.asarray(value, dtype=object)):
            yield float(ord(v[0])) if isinstance(v, str) else float(v or 0.0)


def told(opt, n):
    for _ in range(n):
        trial = opt.ask()
        opt.tell(trial, score(trial.params))
    return opt


def points_of(opt):
    return [trial.x.tolist() for trial in opt.trials]


# ---- the frame


def test_the_default_centre_is_the_middle_of_every_range_and_the_first_of_every_choice():
    params = Frame(MIXED).params(Frame(MIXED).center)
    assert params["r"] == pytest.approx(2.0)  # the geometric mean of 0.5 and 8
    assert params["k"] in (0, 1)
    assert params["c"] == "a"
    assert set(params["w"].tolist()) <= {49, 50}


def test_the_centre_is_exactly_zero_and_zero_exactly_the_centre():
    for center in (None, CENTER):
        frame = Frame(MIXED, center)
        assert not frame.to_ball(frame.center[None]).any()
        assert np.array_equal(frame.to_user(np.zeros(frame.domain.dim)), frame.center)
        with pytest.raises(ValueError, match="read-only"):
            frame.center[0] = 0.0


def test_the_ball_reaches_the_farthest_corner_of_the_cube():
    frame = Frame(MIXED, CENTER)
    corners = np.array(list(itertools.product([-1.0, 1.0], repeat=MIXED.dim)))
    center = MIXED.encode(MIXED.vector(CENTER, "center")[None])[0]
    assert frame.domain.radius == pytest.approx(np.linalg.norm(corners - center, axis=-1).max(), rel=1e-12)
    np.testing.assert_allclose(frame.domain.low, -1.0 - center)
    np.testing.assert_allclose(frame.domain.high, 1.0 - center)


@pytest.mark.parametrize("center", [None, CENTER])
def test_points_of_the_space_survive_the_way_to_the_ball_and_back(center):
    frame = Frame(MIXED, center)
    u = MIXED.decode(np.random.default_rng(0).uniform(-1, 1, (200, MIXED.dim)))
    z = frame.to_ball(u)
    assert frame.domain.contains(z).all()
    back = np.stack([frame.to_user(point) for point in z])
    np.testing.assert_allclose(back[:, 0], u[:, 0], rtol=1e-13)
    assert np.array_equal(back[:, 1:], u[:, 1:])


def test_projected_and_spread_and_redrawn_points_of_the_domain_can_be_evaluated():
    """The model is asked about what will be evaluated: the way to user units and back changes nothing."""
    frame = Frame(MIXED, CENTER)
    rng = np.random.default_rng(0)
    z = frame.domain.project(rng.uniform(-3, 3, (200, MIXED.dim)))
    for x in (z, frame.domain.from_unit_cube(rng.random((200, MIXED.dim))), frame.domain.lattice.redrawn(z, rng)):
        assert frame.domain.contains(x).all()
        np.testing.assert_allclose(frame.to_ball(np.stack([frame.to_user(p) for p in x])), x, atol=1e-14)


def test_real_numbers_alone_have_no_lattice():
    assert Frame(Space(a=Real(0, 1), b=Real(1, 9, log=True))).domain.lattice is None
    assert Frame(MIXED).domain.lattice is not None


def test_unseen_finds_the_last_point_of_a_small_space():
    frame, rng = Frame(FINITE), np.random.default_rng(0)
    every = {(float(k), float(c), float(b)) for k in (1, 2, 3) for c in (0, 1) for b in (0, 1)}
    for last in every:
        assert tuple(frame.unseen(every - {last}, rng).tolist()) == last
    assert {tuple(frame.unseen(set(), rng).tolist()) for _ in range(200)} == every


def test_unseen_draws_from_a_large_space_what_is_not_among_the_seen():
    frame = Frame(Space(k=Integer(0, 200_000)))

    class AllButSeven:
        def __contains__(self, u):
            return u[0] % 1000 != 7.0

    assert frame.unseen(AllButSeven(), np.random.default_rng(0))[0] % 1000 == 7.0


# ---- ask and tell, whatever the space


@st.composite
def spaces(draw):
    """One to three small parameters of every kind."""
    ends = st.tuples(st.integers(-5, 50), st.integers(1, 40)).map(lambda t: (t[0], t[0] + t[1]))
    shapes = st.sampled_from([(), (), 1, 2, (2, 2)])
    choices = st.lists(st.sampled_from(["a", "b", "c", 7, 2.5, None, False]), min_size=2, unique=True)
    kinds = st.one_of(
        st.builds(lambda e, s: Real(*e, shape=s), ends, shapes),
        st.builds(lambda e, s: Real(10.0 ** e[0], 10.0 ** e[1], log=True, shape=s), ends, shapes),
        st.builds(lambda e, s: Integer(*e, shape=s), ends, shapes),
        st.builds(lambda e, s: Integer(e[0] + 6, e[1] + 6, log=True, shape=s), ends, shapes),
        choices.map(Categorical),
        st.just(Boolean()),
    )
    return Space({f"p{i}": p for i, p in enumerate(draw(st.lists(kinds, min_size=1, max_size=3)))})


def is_value_of(value, parameter):
    """What the documentation promises, checked without the parameter's own code."""
    if isinstance(parameter, Boolean):
        return type(value) is bool
    if isinstance(parameter, Categorical):
        return any(type(value) is type(choice) and value == choice for choice in parameter.choices)
    kind, dtype = (int, np.int64) if isinstance(parameter, Integer) else (float, np.float64)
    if parameter.shape:
        right = isinstance(value, np.ndarray) and value.dtype == dtype and value.shape == parameter.shape
    else:
        right = type(value) is kind
    return right and bool(np.all((value >= parameter.low) & (value <= parameter.high)))


@given(spaces(), st.integers(0, 10**6), st.data())
@settings(max_examples=40)
def test_any_space_is_searched_without_a_point_asked_twice(space, seed, data):
    opt = make(space, seed=seed, method=dataclasses.replace(CHEAP, repeats=False))  # not even to find out about noise
    finite = space.n_points
    waiting = []
    for i in range(12):
        if i >= finite:
            with pytest.raises(SpaceExhaustedError, match=f"all {finite} points"):
                opt.ask()
            break
        trial = opt.ask()
        assert list(trial.params) == list(space.parameters)
        for name, parameter in space.parameters.items():
            assert is_value_of(trial.params[name], parameter), (name, trial.params)
        assert np.array_equal(space.vector(trial.params, "trial"), trial.x)
        waiting.append(trial)
        if len(waiting) > 2 or data.draw(st.booleans()):
            done = waiting.pop(0)
            if data.draw(st.integers(0, 5)):
                opt.tell(done, score(done.params))
            else:
                opt.fail(done)
    assert len({tuple(x) for x in points_of(opt)}) == len(opt.trials)
    known = opt._known()
    for points, status in ((known.x, "done"), (known.pending, "open"), (known.failed, "failed")):
        for z, trial in zip(points, opt.history.of(status), strict=True):
            back = space.params(opt.frame.to_user(z))
            for name, parameter in space.parameters.items():
                if isinstance(parameter, Real):
                    rounding = 0.0 if parameter.log else 1e-13 * max(abs(parameter.low), abs(parameter.high))
                    np.testing.assert_allclose(back[name], trial.params[name], rtol=1e-12, atol=rounding)
                else:
                    assert np.array_equal(back[name], trial.params[name])


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_every_method_takes_a_space(method):
    n = method.n_first_discrete + 4
    opt = told(make(method=method, center=CENTER), n)
    assert plain(opt.trials[0].params) == CENTER
    assert len({tuple(x) for x in points_of(opt)}) == n
    first = ["center", *["random"] * method.n_first_discrete]
    assert [t.origin for t in opt.trials[: len(first) + 1]] == [*first, "model"]
    assert opt.best.value == min(score(t.params) for t in opt.trials)


def test_before_the_model_every_choice_comes_up_as_often_as_any_other():
    space = Space(a=Categorical(["x", "y", "z"]), b=Boolean(), k=Integer(0, 3), r=Real(0, 1))
    for seed in range(5):
        opt = cylbo.Optimizer(space, seed=seed)
        for i in range(opt.method.n_first_discrete):
            trial = opt.ask()  # open, told or failed, all of them count
            if i % 3:
                opt.tell(trial, trial.params["r"]) if i % 2 else opt.fail(trial)
        for name, among in (("a", 3), ("b", 2), ("k", 4)):
            counts = Counter(trial.params[name] for trial in opt.trials)
            assert len(counts) == among
            assert max(counts.values()) - min(counts.values()) <= 2


def test_the_same_seed_gives_the_same_run_and_another_seed_another():
    runs = [points_of(told(make(seed=seed), 6)) for seed in (3, 3, 4)]
    assert runs[0] == runs[1] != runs[2]


def test_a_space_of_real_numbers_is_the_box_of_the_same_bounds():
    bounds = [(-1.0, 2.0), (10.0, 30.0)]
    named, box = make(Space(a=Real(*bounds[0]), b=Real(*bounds[1]))), make(bounds)
    for _ in range(6):
        trials = [opt.ask() for opt in (named, box)]
        np.testing.assert_allclose(trials[0].x, trials[1].x, rtol=1e-9)
        assert trials[0].params == {"a": trials[0].x[0], "b": trials[0].x[1]}
        assert trials[1].params is None
        for opt, trial in zip((named, box), trials, strict=True):
            opt.tell(trial, float(np.sin(trials[1].x).sum()))


def test_real_numbers_beside_more_integers_than_can_be_counted():
    opt = told(make(Space(r=Real(0, 1), k=Integer(0, 99, shape=200))), 4)
    assert len({tuple(x) for x in points_of(opt)}) == 4


@pytest.mark.parametrize("twin_of", [copy.deepcopy, lambda opt: pickle.loads(pickle.dumps(opt))])
def test_a_copied_optimizer_goes_on_as_the_first(twin_of):
    opt = told(make(), 4)
    assert points_of(told(twin_of(opt), 2)) == points_of(told(opt, 2))


# ---- centre and earlier points


def test_the_users_centre_and_points_are_asked_first_exactly():
    given_points = [{"r": 0.7, "k": -2, "c": "c", "w": np.array([0, 1])}, CENTER, {**CENTER, "k": 0}]
    opt = told(make(center=CENTER, x0=given_points), 5)
    assert [plain(t.params) for t in opt.trials[:3]] == [plain(p) for p in given_points]
    assert [t.origin for t in opt.trials[:3]] == ["given"] * 3
    assert "center" not in [t.origin for t in opt.trials]
    assert len({tuple(x) for x in points_of(opt)}) == 5


def test_earlier_evaluations_are_known_and_not_asked():
    earlier = [{**CENTER, "k": k} for k in (0, 1, 2)]
    opt = make(x0=earlier, y0=[3.0, 1.0, 2.0])
    assert plain(opt.best.params) == earlier[1]
    told(opt, 4)
    assert len({tuple(x) for x in points_of(opt)}) == 7


BAD_POINTS = [
    ({**CENTER, "r": 9.0}, ValueError, r"\['r'\] must lie within"),
    ({**CENTER, "r": math.nan}, ValueError, r"\['r'\] must lie within"),
    ({**CENTER, "k": 0.5}, ValueError, r"\['k'\] must be a whole number"),
    ({**CENTER, "k": True}, TypeError, r"\['k'\] must be one number"),
    ({**CENTER, "c": "d"}, ValueError, r"\['c'\] must be one of 'a', 'b', 'c'"),
    ({**CENTER, "w": [1]}, TypeError, r"\['w'\] must be an array of numbers of shape \(2,\)"),
    ({"r": 1.0}, ValueError, r"missing \['k', 'c', 'w'\], unknown \[\]"),
    ({**CENTER, "z": 1}, ValueError, r"unknown \['z'\]"),
    ([1.0, 3, "b", 7, 99], TypeError, "must be a dict of r, k, c, w"),
]


@pytest.mark.parametrize(("point", "error", "message"), BAD_POINTS)
def test_a_bad_centre_or_point_gets_a_clear_error(point, error, message, tmp_path):
    with pytest.raises(error, match=f"center.*{message}"):
        make(center=point, storage=tmp_path / "run.db")
    with pytest.raises(error, match=rf"x0\[1\].*{message}"):
        make(x0=[CENTER, point], storage=tmp_path / "run.db")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("x0", [CENTER, "r", 3, np.zeros((2, 5))])
def test_earlier_points_that_are_no_list_get_a_clear_error(x0):
    with pytest.raises(TypeError, match="x0 must be a list of dicts, got"):
        make(x0=x0)


def test_values_must_match_the_earlier_points():
    with pytest.raises(ValueError, match=r"y0 must have shape \(1,\)"):
        make(x0=[CENTER], y0=[1.0, 2.0])


@pytest.mark.parametrize("region", ["ball", "sphere", None])
def test_a_space_knows_no_region_but_its_own(region):
    with pytest.raises(ValueError, match=f"region must be 'box' in a space of named parameters, got {region!r}"):
        make(region=region)


def test_a_refused_value_changes_nothing():
    opt = told(make(), 3)
    trial = opt.ask()
    for bad in (math.nan, "1", None):
        with pytest.raises((TypeError, ValueError)):
            opt.tell(trial, bad)
    opt.tell(trial, score(trial.params))
    assert points_of(told(opt, 1)) == points_of(told(make(), 5))


# ---- a finite space

EVERY = sorted((k, c, b) for k in (1, 2, 3) for c in "ab" for b in (False, True))


def as_tuple(params):
    return params["k"], params["c"], params["b"]


def as_params(k, c, b):
    return {"k": k, "c": c, "b": b}


@pytest.mark.parametrize("method", ["default", "cylinder", "paper"])
def test_every_point_of_a_finite_space_is_asked_exactly_once(method):
    opt = told(make(FINITE, method=METHODS[method]), 12)
    assert sorted(as_tuple(t.params) for t in opt.trials) == EVERY
    before = points_of(opt)
    for _ in range(2):
        with pytest.raises(SpaceExhaustedError, match="all 12 points of the space have been asked for"):
            opt.ask()
    assert points_of(opt) == before


def test_every_point_of_a_finite_space_is_asked_exactly_once_with_all_of_them_open_or_failed():
    opt = make(FINITE)
    for i in range(12):
        trial = opt.ask()
        if i % 2:
            opt.fail(trial)
    assert sorted(as_tuple(t.params) for t in opt.trials) == EVERY
    with pytest.raises(SpaceExhaustedError):
        opt.ask()
    for trial in opt.history.of("open"):
        opt.tell(trial, 1.0)
    assert len(opt.history.of("done")) == 6


def test_the_end_of_a_finite_space_is_an_error_of_cylbo_and_not_of_the_arguments():
    assert issubclass(SpaceExhaustedError, cylbo.CylboError)
    assert not issubclass(SpaceExhaustedError, (ValueError, TypeError))


@pytest.mark.parametrize("fails", [False, True])
def test_minimize_ends_cleanly_when_every_point_was_evaluated(fails):
    seen = []

    def fun(params):
        seen.append(as_tuple(params))
        return math.nan if fails and params["c"] == "b" else score(params)

    result = cylbo.minimize(fun, FINITE, budget=50, seed=0, method=METHODS["default"])
    assert sorted(seen) == EVERY
    assert (result.nfev, result.success) == (12, True)
    assert result.message == "evaluated all 12 points of the space"
    best = min((p for p in EVERY if not (fails and p[1] == "b")), key=lambda p: score(as_params(*p)))
    assert as_tuple(result.params) == best
    assert result.fun == score(as_params(*best))


def test_if_every_point_fails_the_result_says_so():
    result = cylbo.minimize(lambda params: math.inf, FINITE, budget=50, seed=0, method=CHEAP)
    assert (result.nfev, result.success) == (12, False)
    for name in ("x", "params"):
        with pytest.raises(NoResultError, match="no evaluation succeeded"):
            getattr(result, name)
    assert result.message == "evaluated all 12 points of the space; no evaluation succeeded"


@pytest.mark.parametrize("with_values", [False, True])
@pytest.mark.parametrize("rows", [[0, 5, 7], [3, 3, 8], [2, 2, 2], list(range(12)), [*range(12), 4]])
def test_earlier_points_count_among_those_of_a_finite_space(rows, with_values):
    x0 = [as_params(*EVERY[i]) for i in rows]
    y0 = [score(p) for p in x0] if with_values else None
    opt = make(FINITE, x0=x0, y0=y0)
    known = len(opt.trials)
    with pytest.raises(SpaceExhaustedError):
        told(opt, 20)
    ours = [t for t in opt.trials if t.origin not in ("told", "given")]
    assert sorted(as_tuple(t.params) for t in ours) == sorted(set(EVERY) - {EVERY[i] for i in rows})
    assert {as_tuple(t.params) for t in opt.trials} == set(EVERY)
    result = cylbo.minimize(score, FINITE, budget=50, seed=0, method=CHEAP, x0=x0, y0=y0)
    assert result.nfev == len(opt.trials) - known
    assert result.message.startswith("evaluated all 12 points")


def test_the_smallest_space_has_two_points():
    result = cylbo.minimize(lambda params: float(params["b"]), Space(b=Boolean()), budget=9, seed=0, method=CHEAP)
    assert result.func_vals.tolist() == [0.0, 1.0]
    assert result.params == {"b": False}


# ---- files


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_resumed_run_gives_the_points_of_an_undisturbed_one(tmp_path, direction):
    path, x0 = tmp_path / "run.db", [CENTER, {**CENTER, "k": 0}, {**CENTER, "k": 1}]
    options = {"x0": x0, "direction": direction}
    undisturbed = points_of(told(make(**options), 9))
    for stop in (2, 3, 4):  # the first stop leaves one of the given points in the queue
        with make(storage=path, resume=True, **options) as opt:
            told(opt, stop)
            assert opt.best.value == (max if direction == "maximize" else min)(t.value for t in opt.trials)
    assert points_of(opt) == undisturbed
    loaded = cylbo.load(path)
    assert [repr(t.params) for t in loaded.trials] == [repr(t.params) for t in opt.trials]
    assert [plain(t.params) for t in loaded.trials[:3]] == [plain(p) for p in x0]
    assert (loaded.fun, plain(loaded.params)) == (opt.best.value, plain(opt.best.params))
    assert loaded.nfev == 9


def test_an_open_trial_of_a_space_is_open_still_after_it_was_resumed(tmp_path):
    with told(make(storage=tmp_path / "run.db"), 3) as opt:
        asked = opt.ask()
    assert repr(cylbo.load(tmp_path / "run.db").trials[-1].params) == repr(asked.params)
    with make(storage=tmp_path / "run.db", resume=True) as opt:
        (still,) = opt.history.of("open")
        assert repr(still.params) == repr(asked.params)
        opt.tell(still, score(still.params))
        assert points_of(told(opt, 1)) == points_of(told(make(), 5))


def with_parameters(**changed):
    return Space({**MIXED.parameters, **changed})


OTHERS = {
    "a narrower range": ({"space": with_parameters(k=Integer(-2, 2))}, "space"),
    "another scale": ({"space": with_parameters(r=Real(0.5, 8.0))}, "space"),
    "another kind": ({"space": with_parameters(k=Real(-2, 3))}, "space"),
    "another shape": ({"space": with_parameters(w=Integer(0, 99, shape=(2, 1)))}, "space"),
    "another name of a choice": ({"space": with_parameters(c=Categorical(["a", "b", "d"]))}, "space"),
    "another name": ({"space": Space({n.upper(): p for n, p in MIXED.parameters.items()})}, "space"),
    "a box": ({"space": [(0.0, 1.0)] * 5}, "space"),
    "another centre": ({"center": CENTER}, "center"),
    "another direction": ({"direction": "maximize"}, "direction"),
    "another seed": ({"seed": 1}, "seed"),
}


@pytest.mark.parametrize(("changed", "named"), OTHERS.values(), ids=OTHERS)
def test_a_file_of_another_run_is_refused_and_left_as_it_is(changed, named, tmp_path):
    path = tmp_path / "run.db"
    with told(make(storage=path), 2):
        pass
    before = [(repr(t.params), t.value) for t in cylbo.load(path).trials]
    with pytest.raises(StorageError, match=f"holds a run with another {named}"):
        make(**{"storage": path, "resume": True, **changed})
    assert [(repr(t.params), t.value) for t in cylbo.load(path).trials] == before
    with make(storage=path, resume=True) as opt:
        assert len(opt.trials) == 2


NINE = f"x'{np.array([1.0, 0.0, 9.0, 5.0, 5.0]).tobytes().hex()}'"  # no choice has this place
DAMAGES = {
    "choice of a trial": f"UPDATE trials SET x = {NINE} WHERE id = 1",
    "choice of a given point": "UPDATE header SET json = json_set(json, '$[0][2]', 9.0) WHERE name = 'x0'",
    "choice of the centre": "UPDATE header SET json = json_set(json, '$.center[2]', 9.0) WHERE name = 'space'",
    "centre outside": "UPDATE header SET json = json_set(json, '$.center[0]', 9.0) WHERE name = 'space'",
    "centre too long": "UPDATE header SET json = json_set(json, '$.center[#]', 9.0) WHERE name = 'space'",
    "centre too short": "UPDATE header SET json = json_remove(json, '$.center[4]') WHERE name = 'space'",
    "infinite centre": "UPDATE header SET json = replace(json, '3.0, 1.0', 'Infinity, 1.0') WHERE name = 'space'",
    "no kind": "UPDATE header SET json = json_remove(json, '$.parameters[0][1].kind') WHERE name = 'space'",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_file_of_a_space_is_refused_and_left_as_it_is(damage, tmp_path):
    path = tmp_path / "run.db"
    told(make(storage=path, center=CENTER, x0=[CENTER]), 2).close()
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute(damage)
        assert db.total_changes == 1
        db.commit()
    content = path.read_bytes()
    for attempt in (lambda: cylbo.load(path), lambda: make(storage=path, resume=True)):
        with pytest.raises(StorageError, match=f"{path} is damaged .*restore it from a copy"):
            attempt()
    assert path.read_bytes() == content


def test_minimize_goes_on_with_a_stored_run_of_a_finite_space_to_its_end(tmp_path):
    seen = []

    def fun(params):
        seen.append(as_tuple(params))
        return score(params)

    for budget, nfev in ((5, 5), (50, 12), (50, 12)):
        path = tmp_path / "run.db"
        result = cylbo.minimize(fun, FINITE, budget=budget, seed=0, method=CHEAP, storage=path, resume=True)
        assert result.nfev == nfev
    assert sorted(seen) == EVERY
    assert result.message == "evaluated all 12 points of the space"


def test_a_method_without_a_spray_works_on_a_lattice():
    method = dataclasses.replace(cylbo.DEFAULT, n_spray=0, fit_steps=2)
    opt = cylbo.Optimizer(cylbo.Space(a=cylbo.Integer(0, 30), b=cylbo.Real(0, 1)), seed=0, method=method)
    for _ in range(6):
        trial = opt.ask()
        opt.tell(trial, float(trial.params["a"]))


def test_the_paper_keeps_to_the_lattice_without_falling_back():
    method = dataclasses.replace(cylbo.PAPER, n_sobol=200, first_sweeps=3, sweeps=1, n_starts=5, max_steps=20)
    opt = cylbo.Optimizer(cylbo.Space(a=cylbo.Integer(0, 40), b=cylbo.Integer(0, 40)), seed=0, method=method)
    for _ in range(20):
        trial = opt.ask()
        opt.tell(trial, float((trial.params["a"] - 7) ** 2 + (trial.params["b"] - 30) ** 2))
    assert [trial.origin for trial in opt.trials].count("space-filling") <= 2


def test_choices_of_another_type_are_another_space_to_a_stored_run(tmp_path):
    path = tmp_path / "run.db"
    with cylbo.Optimizer(cylbo.Space(a=cylbo.Categorical([0, 1])), storage=path) as opt:
        opt.ask()
    with pytest.raises(cylbo.StorageError, match="another space"):
        cylbo.Optimizer(cylbo.Space(a=cylbo.Categorical([False, True])), storage=path, resume=True)


def test_what_is_done_to_the_params_of_a_trial_stays_its_own_affair():
    opt = cylbo.Optimizer(MIXED, seed=0, method=CHEAP)
    trial = opt.ask()
    before = plain(trial.params)
    trial.params.clear()
    trial.params["w"][:] = 0
    opt.tell(trial, 1.0).params.clear()
    assert plain(trial.params) == plain(opt.best.params) == plain(opt.trials[0].params) == before


@pytest.mark.parametrize("twin_of", [copy.deepcopy, lambda trial: pickle.loads(pickle.dumps(trial))])
def test_a_trial_travels_to_another_process_and_back(twin_of):
    opt = cylbo.Optimizer(MIXED, seed=0, method=CHEAP)
    trial = twin_of(opt.ask())
    assert plain(trial.params) == plain(opt.trials[0].params)
    assert opt.tell(trial, score(trial.params)).status == "done"
