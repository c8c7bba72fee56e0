"""A stored run goes on in a larger space: all that was told is kept, and the points are those of that space."""

import contextlib
import itertools
import math
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import traceback

import numpy as np
import pytest

import cylbo
from cylbo import Boolean, Categorical, Integer, Real, Space
from cylbo.space.box import Box
from cylbo.store import file as storage
from test_storage import METHODS, Failing, bits, files, full_disk

CHEAP = METHODS["default"]
OLD = Space(
    r=Real(0.5, 8.0, log=True), k=Integer(-2, 3), c=Categorical(["a", "b"]), b=Boolean(), w=Real(-1, 1, shape=2)
)
# Every range wider, every choice elsewhere, another order, and a new parameter of every kind: first, between and last
NEW = Space(
    act=Categorical(["relu", "gelu", None], default=None),
    w=Real(-1.5, 1, shape=2),
    c=Categorical(["z", "b", "a"]),
    lr=Real(1e-4, 1e-1, log=True, default=3e-3),
    b=Boolean(),
    r=Real(0.25, 8.5, log=True),
    k=Integer(-2, 30),
    m=Integer(1, 9, shape=2, default=4),
    bias=Boolean(default=True),
)
ADDED = {"act": None, "lr": 3e-3, "m": [4, 4], "bias": True}
X0 = [
    {"r": 2.5, "k": 3, "c": "b", "b": True, "w": [0.25, -0.75]},
    {"r": 1.0, "k": -2, "c": "a", "b": False, "w": [1.0, 0.0]},
    {"r": 8.0, "k": 0, "c": "b", "b": False, "w": [0.5, 0.5]},
]
BOX = [(-1.0, 2.0), (10.0, 30.0), (-5.0, -4.0)]
WIDER = [(-1.0, 4.0), (0.0, 30.0), (-5.0, -4.0)]

every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.db"


def make(path, space=OLD, *, seed=0, method=CHEAP, resume=True, **options):
    return cylbo.Optimizer(space, seed=seed, method=method, storage=path, resume=resume, **options)


def plain(params):
    return {name: np.asarray(value, object).tolist() for name, value in params.items()}


def score(trial):
    """Some value for any point of any of these spaces, the same for the same point."""
    values = [trial.x] if trial.params is None else [v for _, v in sorted(trial.params.items())]
    flat = [entry for value in values for entry in np.ravel(np.asarray(value, object))]
    return math.fsum(math.sin(1.0 + (ord(v[0]) if isinstance(v, str) else float(v or 0))) for v in flat)


def told(opt, n):
    for _ in range(n):
        trial = opt.ask()
        opt.tell(trial, score(trial))
    return opt


def contents(path):
    """All rows of the file, by table."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        return {table: db.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall() for table in TABLES}


TABLES = ("header", "trials", "memory")


def eventful(path, constraints=(), **options):
    """A run with trials of every kind, and a state."""
    with make(path, **options) as opt:
        for i in range(5):
            opt.tell(opt.ask(), score(opt.trials[-1]), std=0.125 * i, constraints=constraints)
        opt.fail(opt.ask(), "diverged")
        asked = opt.ask()
        opt.ask()
        opt.tell(asked, 0.25, constraints=constraints)
    assert {t.status for t in opt.trials} == {"open", "done", "failed"}
    return opt.trials


# ---- spaces


def test_points_keep_their_values_by_name_in_any_space_that_contains_theirs():
    u = OLD.decode(np.random.default_rng(0).uniform(-1, 1, (200, OLD.dim)))
    carried = NEW.carried_over(OLD, u)
    assert carried.shape == (200, NEW.size)
    for before, after in zip(u, carried, strict=True):
        assert plain(NEW.params(after)) == {**plain(OLD.params(before)), **ADDED}
    assert np.array_equal(OLD.carried_over(OLD, u), u)


def changed(**parameters):
    return Space({**OLD.parameters, **parameters})


CONTAINED = {
    "itself": OLD,
    "another order": Space(dict(reversed(OLD.parameters.items()))),
    "a lower end": changed(r=Real(0.4, 8.0, log=True)),
    "a higher end": changed(k=Integer(-2, 4)),
    "an array": changed(w=Real(-1.0, 1.0 + 1e-15, shape=2)),
    "choices in another order": changed(c=Categorical(["b", "a"])),
    "more choices": changed(c=Categorical(["x", "a", "y", "b"])),
    "a default": changed(k=Integer(-2, 3, default=3), b=Boolean(default=True)),
    "a new parameter": changed(m=Integer(0, 1, default=1)),
}


@pytest.mark.parametrize("space", CONTAINED.values(), ids=CONTAINED)
def test_what_contains_the_stored_space_is_accepted(path, space):
    before = eventful(path)
    added = {name: 1 for name in space.parameters if name not in OLD.parameters}
    with make(path, space) as opt:
        assert [plain(t.params) for t in opt.trials] == [{**plain(t.params), **added} for t in before]
        assert space == opt.frame.space
        told(opt, 2)


NOT_CONTAINED = {
    "low end": (changed(r=Real(0.6, 8.0, log=True)), r"'r' was Real\(0.5, 8.0, log=True\), and Real\(0.6, .* lacks"),
    "high end": (changed(k=Integer(-9, 2)), r"'k' was Integer\(-2, 3\), and Integer\(-9, 2\) lacks .*keep its values"),
    "array": (changed(w=Real(-1, 0.5, shape=2)), "'w' was Real.*keep its values"),
    "choice": (changed(c=Categorical(["a", "d"])), r"'c' was Categorical\(\['a', 'b'\]\), and .*\['a', 'd'\]\) lacks"),
    "kind": (changed(k=Real(-2, 3)), r"'k' was Integer\(-2, 3\), not Real\(-2.0, 3.0\); keep its kind, shape and"),
    "kind that looks alike": (changed(b=Categorical([False, True])), r"'b' was Boolean\(\), not Categorical.*keep its"),
    "scale": (changed(r=Real(0.5, 8.0)), "'r' was .*keep its kind, shape and scale"),
    "shape": (changed(w=Real(-1, 1, shape=(2, 1))), "'w' was .*keep its kind, shape and scale"),
    "removed": (Space(k=Integer(-2, 3), c=Categorical(["a", "b"]), b=Boolean()), "has 'r', 'w', missing here; keep"),
    "renamed": (Space({f"{n}_": p for n, p in OLD.parameters.items()}), "'r', 'k', 'c', 'b', 'w', missing here; keep"),
    "no default": (changed(m=Integer(0, 1)), "'m' is new, without a default; give it the value .* as default="),
    "no names": ([(0.0, 1.0)] * 6, "it has a Space, not plain bounds; keep to it"),
}


@pytest.mark.parametrize(("space", "message"), NOT_CONTAINED.values(), ids=NOT_CONTAINED)
def test_what_does_not_is_refused_with_the_reason_and_the_file_left_as_it_is(path, space, message):
    before = eventful(path)
    stored = files(path)
    with pytest.raises(
        cylbo.StorageError, match=f"{path} holds a run with another space: .*{message}.*, or choose another file"
    ):
        make(path, space)
    assert files(path) == stored
    with make(path) as opt:  # the lock is free
        assert bits(opt.trials) == bits(before)


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"direction": "maximize"}, {"method": "paper"}, {"center": {**X0[0], **ADDED}}]
)
def test_a_larger_space_does_not_excuse_other_differences(path, change):
    eventful(path)
    stored = files(path)
    with pytest.raises(cylbo.StorageError, match=f"another {next(iter(change))}"):
        make(path, NEW, **change)
    assert files(path) == stored


# ---- what is kept


def test_all_that_was_told_is_kept_but_for_the_place_of_its_points(path):
    before = eventful(path, constraints=[-0.5, 2.0], x0=X0)
    old = contents(path)
    assert old["memory"]
    make(path, NEW).close()
    new = contents(path)
    assert [(i, *rest) for i, _, *rest in new["trials"]] == [(i, *rest) for i, _, *rest in old["trials"]]
    assert {k: v for k, v in new["header"] if k not in ("space", "x0")} == {
        k: v for k, v in old["header"] if k not in ("space", "x0")
    }
    assert new["memory"] == []
    loaded = cylbo.load(path)
    assert [plain(t.params) for t in loaded.trials] == [{**plain(t.params), **ADDED} for t in before]
    assert [(t.id, t.value, t.status, t.origin) for t in loaded.trials if t.status == "done"] == [
        (t.id, t.value, t.status, t.origin) for t in before if t.status == "done"
    ]
    assert loaded.x_iters.shape == (7, NEW.size)


def test_open_trials_are_open_still_and_can_be_told(path):
    eventful(path)
    seen = []

    def fun(params):
        seen.append(plain(params))
        return 1.0

    with make(path) as opt:
        (still,) = opt.history.of("open")
    result = cylbo.minimize(fun, NEW, budget=9, seed=0, method=CHEAP, storage=path, resume=True)
    assert seen[0] == {**plain(still.params), **ADDED}
    assert len(seen) == 2
    assert result.trials[still.id].value == 1.0


def test_the_second_resume_is_an_ordinary_one(path):
    eventful(path)
    with make(path, NEW) as opt:
        told(opt, 1)
    stored = files(path)
    for options in ({}, {"center": NEW.params(opt.frame.center)}):
        with make(path, NEW, **options) as again:
            assert bits(again.trials) == bits(opt.trials)
            assert again._memory.state is not None
        assert files(path) == stored
    with pytest.raises(cylbo.StorageError, match="another space"):
        make(path, OLD)


def test_it_may_grow_again_and_again(path):
    before = eventful(path)
    for space in (CONTAINED["choices in another order"], CONTAINED["a higher end"], NEW):
        make(path, space).close()
    assert [plain(t.params) for t in cylbo.load(path).trials] == [{**plain(t.params), **ADDED} for t in before]


# ---- the points that follow


@every_method
def test_the_points_that_follow_are_those_of_a_new_run_that_was_told_all_this(path, method):
    """A function of the seed, the new space and the data; nothing is left of what was learned in old coordinates."""
    with told(make(path, method=method), 6) as old:
        pass
    fresh = cylbo.Optimizer(
        NEW,
        seed=0,
        method=method,
        center={**old.trials[0].params, **ADDED},
        x0=[{**t.params, **ADDED} for t in old.trials],
        y0=[t.value for t in old.trials],
    )
    with make(path, NEW, method=method) as opt:
        assert [t.x.tobytes() for t in told(opt, 5).trials] == [t.x.tobytes() for t in told(fresh, 5).trials]
        assert any(plain(t.params)[name] != value for t in opt.trials[6:] for name, value in ADDED.items())


@every_method
def test_resumed_after_every_step_they_are_those_of_a_run_left_alone(tmp_path, method):
    calm, disturbed = tmp_path / "calm.db", tmp_path / "disturbed.db"
    for path in (calm, disturbed):
        eventful(path, method=method)
    with make(calm, NEW, method=method) as opt:
        told(opt, 6)
    make(disturbed, NEW, method=method).close()
    for _ in range(6):
        with make(disturbed, NEW, method=method) as step:
            trial = step.ask()
        with make(disturbed, NEW, method=method) as step:
            step.tell(trial.id, score(trial))
    assert bits(step.trials) == bits(opt.trials)


def test_a_finite_space_that_was_exhausted_goes_on_when_it_has_grown(path):
    space = Space(k=Integer(1, 3), b=Boolean())
    larger = Space(c=Categorical(["x", "y"], default="y"), b=Boolean(), k=Integer(1, 4))
    seen = []

    def fun(params):
        seen.append((params["k"], params["b"], params.get("c", "y")))
        return float(params["k"])

    for each, n in ((space, 6), (larger, 16)):
        result = cylbo.minimize(fun, each, budget=50, seed=0, method=CHEAP, storage=path, resume=True)
        assert result.message == f"evaluated all {n} points of the space"
    assert sorted(seen) == sorted(itertools.product([1, 2, 3, 4], [False, True], "xy"))


# ---- the centre, and points to begin with


def test_the_centre_stays_where_it_was(path):
    with told(make(path), 1) as opt:
        (first,) = opt.trials
    with make(path, NEW) as opt:
        assert plain(NEW.params(opt.frame.center)) == {**plain(first.params), **ADDED}
        assert opt.ask().origin == "random"
        assert [t.origin for t in told(opt, 3).trials].count("center") == 1


def test_a_centre_that_was_not_asked_yet_is_asked_where_it_was(path):
    with make(path, x0=X0) as opt:
        middle = OLD.params(opt.frame.center)
    with make(path, changed(k=Integer(-2, 3, default=-2), m=Integer(0, 9, default=7))) as opt:
        trials = [opt.ask() for _ in range(4)]
    assert [t.origin for t in trials] == ["given"] * 3 + ["center"]
    assert [plain(t.params) for t in trials] == [{**plain(p), "m": 7} for p in (*X0, middle)]


def test_defaults_are_the_centre_of_a_new_run_unless_one_is_given(path):
    space = Space(r=Real(0, 8, default=1.0), k=Integer(0, 9, default=9), s=Real(-1, 1))
    assert cylbo.Optimizer(space).ask().params == {"r": 1.0, "k": 9, "s": 0.0}
    center = {"r": 2.0, "k": 3, "s": 0.5}
    assert cylbo.Optimizer(space, center=center).ask().params == center


def test_points_that_wait_are_carried_over_and_may_be_given_again_in_the_new_space(path):
    with make(path, x0=X0) as opt:
        opt.ask()
    again = [{**params, **ADDED} for params in X0]
    stored = files(path)
    with pytest.raises(cylbo.StorageError, match="another x0"):
        make(path, NEW, x0=[*again[:2], {**again[2], "bias": False}])
    assert files(path) == stored
    with make(path, NEW, x0=again) as opt:
        opt.ask()
    with make(path, NEW, x0=again) as opt:
        opt.ask()
        assert [(t.origin, plain(t.params)) for t in opt.trials] == [("given", plain(p)) for p in again]


# ---- plain bounds


@pytest.mark.parametrize("region", ["box", "ball"])
@every_method
def test_plain_bounds_may_be_wider(path, method, region):
    options = {"method": method, "region": region}
    with told(make(path, BOX, **options), 6) as old:
        pass
    with make(path, WIDER, **options) as opt:
        assert bits(opt.trials) == bits(old.trials)
        assert opt.frame.center.tolist() == [0.5, 20.0, -4.5]
    fresh = cylbo.Optimizer(
        WIDER,
        seed=0,
        center=[0.5, 20.0, -4.5],
        x0=[t.x for t in old.trials],
        y0=[t.value for t in old.trials],
        **options,
    )
    with make(path, WIDER, **options) as opt:
        assert [t.x.tobytes() for t in told(opt, 5).trials] == [t.x.tobytes() for t in told(fresh, 5).trials]
    x = np.array([t.x for t in opt.trials])
    assert region == "ball" or ((x >= np.array(WIDER)[:, 0]) & (x <= np.array(WIDER)[:, 1])).all()
    with pytest.raises(cylbo.StorageError, match=r"bounds 0 were \(-1.0, 4.0\), and \(-1.0, 2.0\) lack some of it"):
        make(path, BOX, **options)


def test_the_ball_is_accepted_exactly_if_it_contains_the_old_one():
    """Both are ellipsoids about the old centre: brute force over the points where the old one's axes end."""
    rng = np.random.default_rng(0)
    outcomes = set()
    for _ in range(300):
        d = int(rng.integers(1, 4))
        low, high = -rng.uniform(0.1, 2.0, d), rng.uniform(0.1, 2.0, d)
        old = Box(np.stack([low, high], -1), np.zeros(d), "ball")
        new = Box(np.stack([low - rng.choice([0, 3], d), high + rng.choice([0, 1, 20], d)], -1), region="ball")
        half, half_new = 0.5 * (high - low), 0.5 * (new.high - new.low)
        far, far_new = np.maximum(-low, high) / half, np.maximum(-new.low, new.high) / half_new
        tips = np.diag(half) * np.linalg.norm(far)
        inside = (np.linalg.norm(tips / half_new, axis=-1) <= np.linalg.norm(far_new) * (1 + 1e-9)).all()
        refused = pytest.raises(ValueError, match="the ball about its centre gets narrower along parameter")
        with contextlib.nullcontext() if inside else refused:
            assert np.array_equal(new.carried_over(old, tips), tips)
        outcomes.add(bool(inside))
    assert outcomes == {True, False}


# ---- whole or not at all


@pytest.mark.parametrize("word", ["BEGIN IMMEDIATE", "UPDATE header", "UPDATE trials", "DELETE FROM memory", "COMMIT"])
def test_a_file_is_carried_over_whole_or_not_at_all_wherever_it_fails(path, tmp_path, word, monkeypatch):
    before = eventful(path)
    stored = contents(path)
    connected = storage._connected
    with monkeypatch.context() as patch:
        patch.setattr(storage, "_connected", lambda *args, **options: Failing(connected(*args, **options), word))
        with pytest.raises(cylbo.StorageError, match="database or disk is full"):
            make(path, NEW)
    assert contents(path) == stored
    assert bits(cylbo.load(path).trials) == bits(before)
    make(path).close()
    assert_goes_on(path, tmp_path)


def test_on_a_full_disk_the_file_stays_as_it_is(path, tmp_path):
    eventful(path)
    stored = contents(path)
    with pytest.raises(cylbo.StorageError, match=str(path)), full_disk():
        make(path, NEW)
    assert contents(path) == stored
    assert_goes_on(path, tmp_path)


def assert_goes_on(path, tmp_path):
    """In the larger space, as if nothing had been in the way."""
    calm = tmp_path / "calm.db"
    if not calm.exists():
        eventful(calm)
        with make(calm, NEW) as opt:
            told(opt, 2)
    with make(path, NEW) as opt:
        told(opt, 2)
    assert bits(opt.trials) == bits(cylbo.load(calm).trials)


def killed_while_it_grows(folder):
    """Copies of a run, killed before the first, the second, ... statement of the resume in a larger space.

    To be called in a process of its own, which forks. The last copy is not killed.
    """
    connected, intact = storage._connected, pathlib.Path(folder, "intact.db")
    eventful(intact)
    for i in itertools.count():
        path = shutil.copy(intact, pathlib.Path(folder, f"{i}.db"))
        pid = os.fork()
        if not pid:
            statements = itertools.count()

            def count(sql, statements=statements, i=i):
                if next(statements) == i:
                    os.kill(os.getpid(), signal.SIGKILL)

            def watched(*args, count=count, **options):
                db = connected(*args, **options)
                db.execute("PRAGMA cache_size=1")  # so that changes reach the log before they are complete
                db.set_trace_callback(count)
                return db

            storage._connected = watched
            try:
                make(path, NEW).close()
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0
            return


def test_a_kill_at_any_statement_leaves_the_old_file_or_the_new_one(tmp_path):
    program = f"import test_widening; test_widening.killed_while_it_grows({str(tmp_path)!r})"
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # for a fork to be safe
    here = pathlib.Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=here, env=os.environ | one_thread, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    old = tmp_path / "intact.db"
    new = shutil.copy(old, tmp_path / "new.db")
    make(new, NEW).close()
    runs = sorted(tmp_path.glob("[0-9]*.db"), key=lambda path: int(path.stem))
    begun = [path for path in runs if (log := path.with_name(f"{path.name}-wal")).exists() and log.stat().st_size]
    assert begun  # some were killed when a part of it was on the disk
    outcomes = []
    for path in runs:
        trials = bits(cylbo.load(path).trials)
        outcomes.append(trials == bits(cylbo.load(new).trials))
        assert outcomes[-1] or trials == bits(cylbo.load(old).trials)
        assert_goes_on(path, tmp_path)
    assert len(outcomes) > 10 + len(cylbo.load(old).trials)
    assert outcomes == sorted(outcomes)
    assert not outcomes[0]
    assert outcomes[-1]


@pytest.mark.parametrize("log", [False, True], ids=["alone", "beside a log"])
def test_who_reads_meanwhile_sees_the_old_run_or_the_new_one(path, monkeypatch, log):
    before = eventful(path)
    if log:
        path.with_name(f"{path.name}-wal").touch()
    reading = storage._reading

    class Slow(Failing):
        def execute(self, sql, *parameters):
            if sql.startswith("SELECT * FROM trials"):
                monkeypatch.setattr(storage, "_reading", reading)
                make(path, NEW).close()
            return self.db.execute(sql, *parameters)

    monkeypatch.setattr(storage, "_reading", lambda path: Slow(reading(path), ""))
    assert bits(cylbo.load(path).trials) == bits(before)
    assert plain(cylbo.load(path).trials[0].params) == {**plain(before[0].params), **ADDED}
