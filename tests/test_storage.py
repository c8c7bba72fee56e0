"""A run in a file: whatever happens to the process, the disk or the file, the points are those of a run left alone."""

import contextlib
import dataclasses
import hashlib
import json
import math
import os
import pathlib
import random
import resource
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import threading
import time
import traceback

import numpy as np
import pytest

import cylbo
from cylbo.bench import store as bench_store

QUICK = {
    "n_sobol": 64, "n_spray": 10, "sweeps": 2, "first_sweeps": 3, "max_steps": 4, "fit_steps": 4, "warm_steps": 2,
    "n_starts": 3, "repeats": False,
}  # fmt: skip
# Few evaluations until the fits go on from the last ones, so that what they left behind matters
GROWTH = {"refit_until": 4, "refit_growth": 0.6, "warm_growth": 0.2, "n_first_discrete": 1}
METHODS = {
    name: dataclasses.replace(cylbo.METHODS[name], **QUICK, **GROWTH) for name in ("default", "cylinder", "paper")
}
CHEAP = METHODS["default"]
BOX = [(-1.0, 2.0), (10.0, 30.0), (-5.0, -4.0)]
X0 = [[0.0, 11.0, -4.25], [1.0 / 3.0, 12.0, -4.4], [1.75, 29.0, -4.9]]
BUDGET = 9

every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


def bowl(x):
    return float(np.sum((x - 0.3) ** 2))


def run(fun=bowl, bounds=BOX, *, budget=BUDGET, seed=0, method=CHEAP, **options):
    return cylbo.minimize(fun, bounds, budget=budget, seed=seed, method=method, **options)


def make(storage, *, bounds=BOX, seed=0, method=CHEAP, resume=True, **options):
    return cylbo.Optimizer(bounds, seed=seed, method=method, storage=storage, resume=resume, **options)


def bits(trials):
    """All that a trial is but for the seconds that its suggestion took, to the last bit."""

    def told(t):
        return np.array([t.value, t.std, *t.constraints]).tobytes()

    return [(t.id, t.x.tobytes(), told(t), t.status, t.origin, t.reason, repr(t.suggestion.to_json())) for t in trials]


def files(path):
    """What the run's files hold. The index of the log (-shm) and the lock are no data; an empty log is as good as none,
    and is what SQLite leaves behind where it only reads.
    """
    all_files = {name: path.with_name(name) for name in (path.name, f"{path.name}-wal", f"{path.name}-journal")}
    contents = {name: each.read_bytes() for name, each in all_files.items() if each.is_file()}
    return {name: hashlib.sha256(content).hexdigest() for name, content in contents.items() if content}


def left_by_a_kill(path, opt):
    """The files as they are while the optimizer holds them, under another name."""
    twin = path.with_name("killed-" + path.name)
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", f"{twin}{suffix}")
    assert os.path.getsize(f"{twin}-wal") > 0
    opt.close()
    return twin


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.db"


# ---- killed at any moment

ATTEMPTS = 40  # kills of each method at the least


def in_a_program(program):
    """Run Python in a process of its own that may fork: it has one thread, and no library that minds."""
    one_thread = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    here = pathlib.Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=here, env=os.environ | one_thread, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done


def killed_runs(folder, name, kills, run_once=None):
    """Runs that are killed and resumed until they are done, one after the other until there were so many kills.

    To be called in a process of its own, which forks: what a kill costs is then a few milliseconds. The time up to it
    is random and longer with every attempt: the first fall on the making of the file, and all runs come to an end.
    """
    rng = random.Random(name)
    n_killed = runs = 0
    while n_killed < kills:
        path, mean, done = pathlib.Path(folder, f"{runs}.db"), 2e-3, False
        while not done:
            pid = os.fork()
            if not pid:
                os._exit((run_once or _logged_run)(path, METHODS[name]))
            time.sleep(rng.expovariate(1.0 / mean))
            os.kill(pid, signal.SIGKILL)
            _, status = os.waitpid(pid, 0)
            if os.WIFEXITED(status):
                assert os.WEXITSTATUS(status) == 0
                done = True
            else:
                n_killed += 1
                mean *= 1.2
                with path.with_suffix(".log").open("a") as log:
                    log.write("killed\n")
        runs += 1
    print(runs, n_killed)


def _logged_run(path, method):
    log = os.open(path.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(word, x):
        os.write(log, f"{word} {x.tobytes().hex()}\n".encode())
        os.fsync(log)

    def fun(x):
        note("called", x)
        return bowl(x)

    try:
        # Not noisy, so that no point is evaluated again to find out
        run(fun, method=method, noisy=False, storage=path, resume=True, callback=lambda trial: note("told", trial.x))
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def batches_by_hand(path, method):
    """A run with three open trials at a time, of which some are cancelled; the state says what comes next."""
    try:
        with make(path, method=method, noisy=False) as opt:
            while sum(trial.status != "open" for trial in opt.trials) < 12:
                n, pending = len(opt.trials), opt.pending
                origins = [trial.origin for trial in opt.trials]
                if n == 4 and "added" not in origins:
                    opt.add([0.1, 12.0, -4.9], 0.5, metadata={"host": "a"})
                elif n == 6 and not opt._waiting:
                    opt.enqueue([0.2, 13.0, -4.8])
                    opt.ask()
                elif len(pending) < 3:
                    opt.ask()
                elif pending[0].id % 5 == 3:
                    opt.cancel(pending[0])
                else:
                    opt.tell(pending[0], bowl(pending[0].x), metadata={"n": n})
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


@pytest.mark.parametrize("name", ["default", "paper"])
def test_runs_by_hand_that_are_killed_with_trials_open_go_on_as_one_that_was_not(tmp_path, name):
    program = f"import test_storage as t; t.killed_runs({str(tmp_path)!r}, {name!r}, {ATTEMPTS}, t.batches_by_hand)"
    done = in_a_program(program)
    runs, kills = map(int, done.stdout.split())
    assert kills >= ATTEMPTS
    assert batches_by_hand(tmp_path / "calm.db", METHODS[name]) == 0
    calm = cylbo.load(tmp_path / "calm.db").trials
    assert {trial.status for trial in calm} == {"open", "done", "cancelled"}
    assert {trial.origin for trial in calm} == {"center", "random", "added", "enqueued", "model"}
    for i in range(runs):
        assert bits(cylbo.load(tmp_path / f"{i}.db").trials) == bits(calm)


@pytest.mark.parametrize("name", ["default", "paper"])
def test_runs_that_are_killed_again_and_again_give_the_points_of_one_that_was_not(tmp_path, name):
    program = f"import test_storage; test_storage.killed_runs({str(tmp_path)!r}, {name!r}, {ATTEMPTS})"
    done = in_a_program(program)
    runs, kills = map(int, done.stdout.split())
    assert kills >= ATTEMPTS
    calm = run(method=METHODS[name], noisy=False)
    points = [trial.x.tobytes().hex() for trial in calm.trials]
    repeated = 0
    for i in range(runs):
        result = cylbo.load(tmp_path / f"{i}.db")
        assert bits(result.trials) == bits(calm.trials)
        told, called, since_kill = [], [], []
        for line in (tmp_path / f"{i}.log").read_text().splitlines():
            word, *x = line.split()
            if word == "killed":
                since_kill = []
            elif word == "told":
                told += x
                assert called[-1:] == x
            else:
                assert x[0] not in told  # what was told once is not evaluated again
                assert x[0] not in since_kill  # and nothing twice without a kill between
                repeated += x[0] in called
                assert not called or x[0] in points[points.index(called[-1]) :][:2]  # nothing is left out
                called += x
                since_kill += x
        assert list(dict.fromkeys(called)) == points
    assert repeated <= kills


def test_a_kill_in_the_first_write_of_all_leaves_nothing_to_clear_away(path):
    """The file's first page is there, and so is the journal that says that there was nothing before."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode=WAL")
    assert path.stat().st_size == 4096
    magic = bytes.fromhex("d9d505f920a163d7")  # the layout: https://sqlite.org/fileformat2.html#the_rollback_journal
    header = magic + struct.pack(">5I", 0, 12345, 0, 512, 4096)
    path.with_name("run.db-journal").write_bytes(header.ljust(512, b"\0"))
    with pytest.raises(sqlite3.OperationalError, match="readonly"):  # it does need a writer
        sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True).execute("SELECT * FROM sqlite_master")
    assert bits(run(storage=path, budget=4).trials) == bits(run(budget=4).trials)


@pytest.mark.parametrize("what", ["nothing", "a file without a byte", "an empty database"])
def test_what_a_kill_may_leave_before_anything_is_stored_is_a_place_for_a_new_run(path, what):
    if what != "nothing":
        path.touch()
    if what == "an empty database":
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA journal_mode=WAL")
    for resume in (False, True):
        result = run(storage=path, budget=3, resume=resume)
        assert bits(result.trials) == bits(run(budget=3).trials)
        path.unlink()


# ---- resumed at every place

SETTINGS = {
    "plain": {},
    "centre": {"center": [0.25, 11.0, -4.75]},
    "ball": {"region": "ball"},
    "given": {"x0": X0},
    "known": {"x0": X0, "y0": [3.0, -0.25, 1e6]},
}


@every_method
@pytest.mark.parametrize("options", SETTINGS.values(), ids=SETTINGS)
def test_a_run_resumed_after_every_evaluation_is_the_run_left_alone(path, method, options):
    for n in range(1, BUDGET + 1):
        step = run(budget=n, method=method, storage=path, resume=True, **options)
    assert bits(step.trials) == bits(run(method=method, **options).trials)


@every_method
def test_a_run_resumed_once_after_any_number_of_evaluations_is_the_run_left_alone(tmp_path, method):
    calm = run(method=method)
    for n in range(1, BUDGET):
        path = tmp_path / f"{n}.db"
        run(budget=n, method=method, storage=path)
        assert bits(run(method=method, storage=path, resume=True).trials) == bits(calm.trials)


@every_method
def test_a_run_with_failures_resumed_after_any_number_of_evaluations_is_the_run_left_alone(path, method):
    def fragile(x):
        if x[1] > 21.0:
            raise ZeroDivisionError(f"no mass at {x[1]}")
        return math.nan if x[0] < 0.0 else bowl(x)

    calm = run(fragile, method=method, on_error="fail", budget=12)
    assert {t.status for t in calm.trials} == {"done", "failed"}
    assert {t.reason[:6] for t in calm.trials} == {"", "ZeroDi", "the ob"}
    for n in range(1, 13):
        step = run(fragile, budget=n, method=method, storage=path, resume=True, on_error="fail")
    assert bits(step.trials) == bits(calm.trials) == bits(cylbo.load(path).trials)


ORDERS = "ask ask ask ask tell2 ask fail0 tell1 ask ask tell4 ask tell3 fail6 ask tell5 ask tell8 tell7 ask ask tell9"
ORDERS_AFTER_X0 = "ask ask ask tell3 ask fail4 ask tell6 ask ask tell5"  # whose ids come first


def obey(opt, order):
    if order == "ask":
        opt.ask()
    elif order.startswith("tell"):
        opt.tell(int(order[4:]), bowl(opt.trials[int(order[4:])].x))
    else:
        opt.fail(int(order[4:]), "diverged")


@every_method
@pytest.mark.parametrize("options", SETTINGS.values(), ids=SETTINGS)
def test_trials_that_were_open_are_open_still_and_the_next_asks_take_account_of_them(path, method, options):
    calm = cylbo.Optimizer(BOX, seed=0, method=method, **options)
    for order in (ORDERS_AFTER_X0 if "y0" in options else ORDERS).split():
        with make(path, method=method, **options) as opt:
            assert bits(opt.trials) == bits(calm.trials)
            obey(opt, order)
        obey(calm, order)
    with make(path, method=method, **options) as opt:
        assert bits(opt.trials) == bits(calm.trials)
        assert len(opt.history.of("open")) >= 2
        assert (opt.best and opt.best.id) == (calm.best and calm.best.id)


@every_method
def test_a_batch_is_open_still_and_the_next_one_takes_account_of_it(path, method):
    calm = cylbo.Optimizer(BOX, seed=0, method=method)
    with make(path, method=method) as opt:
        for each in (opt, calm):
            for trial in each.ask(3):
                each.tell(trial, bowl(trial.x))
            each.ask(4)
    with make(path, method=method) as opt:
        assert bits(opt.trials) == bits(calm.trials)
        assert [trial.id for trial in opt.history.of("open")] == [3, 4, 5, 6]
        for each in (opt, calm):
            each.ask(2)
            each.tell(5, bowl(each.trials[5].x))
            each.ask()
        assert bits(opt.trials) == bits(calm.trials)
    assert bits(cylbo.load(path).trials) == bits(calm.trials)


def test_a_batch_that_ends_a_finite_space_is_open_still(path):
    space = cylbo.Space(k=cylbo.Integer(0, 4), b=cylbo.Boolean())
    with make(path, bounds=space) as opt:
        assert len(opt.ask(100)) == 10
    with make(path, bounds=space) as opt:
        assert len(opt.history.of("open")) == 10
        with pytest.raises(cylbo.SpaceExhaustedError):
            opt.ask(1)


def test_minimize_finishes_what_an_ask_began(path):
    with make(path) as opt:
        asked = [opt.ask().x for _ in range(3)]
    seen = []
    result = run(lambda x: seen.append(x.copy()) or bowl(x), storage=path, resume=True, budget=5)
    assert np.array_equal(seen[:3], asked)
    assert result.nfev == len(seen) == 5
    assert {t.status for t in result.trials} == {"done"}


def test_seed_centre_and_earlier_points_need_not_be_given_again(path):
    center = [0.5, 20.0, -4.75]
    with make(path, seed=None, x0=X0, center=center) as opt:
        seed = opt.seed
        opt.tell(opt.ask(), 1.0)
        opt.ask()
    calm = cylbo.Optimizer(BOX, seed=seed, method=CHEAP, x0=X0, center=center)
    calm.tell(calm.ask(), 1.0)
    with make(path, seed=None) as opt:
        assert opt.seed == seed
        for each in (opt, calm):
            while len(each.trials) < 6:
                each.ask()
        assert [t.origin for t in opt.trials] == ["given"] * 3 + ["center", "random", "random"]
        assert bits(opt.trials) == bits(calm.trials)


def test_earlier_values_need_not_be_given_again(path):
    make(path, x0=X0, y0=[1.0, 2.0, 3.0]).close()
    with make(path) as opt:
        assert [t.value for t in opt.trials] == [1.0, 2.0, 3.0]
        assert opt.ask().origin == "center"


def test_a_run_in_a_file_is_the_run_without_one(path):
    assert bits(run(storage=path).trials) == bits(run().trials)


# ---- interrupted


@pytest.mark.parametrize("at", [1, 2, 5])
@pytest.mark.parametrize("on_error", ["raise", "fail"])
def test_an_evaluation_that_was_interrupted_is_made_once_more(path, at, on_error):
    seen = []

    def interrupted(x):
        seen.append(x.tobytes())
        if len(seen) == at:
            raise KeyboardInterrupt
        return bowl(x)

    with pytest.raises(KeyboardInterrupt):
        run(interrupted, storage=path, on_error=on_error)
    stored = cylbo.load(path)
    assert [t.status for t in stored.trials] == ["done"] * (at - 1) + ["open"]
    assert stored.nfev == at - 1
    result = run(interrupted, storage=path, resume=True, on_error=on_error)
    assert bits(result.trials) == bits(run().trials)
    assert len(seen) == BUDGET + 1
    assert seen[at - 1] == seen[at]


def test_an_interrupt_while_a_point_is_suggested_leaves_the_file_as_it_was(path, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("cylbo.run.optimizer.suggest", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run(storage=path)
    assert bits(cylbo.load(path).trials) == bits(run(budget=1).trials)
    assert bits(run(storage=path, resume=True).trials) == bits(run().trials)


def interrupted_at(step, call, function):
    """Whether a call was interrupted at that bytecode of a function of the package, counted from 1."""
    steps = 0

    def trace(frame, event, arg):
        nonlocal steps
        if frame.f_code.co_qualname != function:
            return None
        frame.f_trace_opcodes = True
        steps += event == "opcode"
        if steps == step:
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


@pytest.mark.parametrize("before", [0, 2], ids=["x0", "waiting"])
def test_an_ask_that_is_interrupted_at_any_moment_loses_no_point_that_the_user_gave(before):
    points, step, was_interrupted = [[0.25], [0.75], [1.25], [1.75]], 0, True
    while was_interrupted:
        step += 1
        opt = make(None, bounds=[(0.0, 2.0)], x0=points[:2], resume=False)
        for x in points[2:]:
            opt.enqueue(x)
        for _ in range(before):
            opt.ask()
        was_interrupted = interrupted_at(step, opt.ask, "Optimizer._ask")
        while len(opt.trials) < len(points):
            opt.ask()
        assert [trial.x.tolist() for trial in opt.trials] == points
    assert step > 50


def test_a_tell_that_is_interrupted_at_any_moment_can_be_repeated(path):
    with make(path) as opt:
        trial, step = opt.ask(), 1
        while interrupted_at(step, lambda: opt.tell(trial, 1.0), "Store._transaction"):
            step += 1
    assert step > 20
    assert [t.value for t in cylbo.load(path).trials] == [1.0]


def typo(x):
    raise ZeroDivisionError("no mass")


MISTAKES = {
    "raises": (typo, ZeroDivisionError, "ZeroDivisionError: no mass"),
    "returns nothing": (lambda x: None, TypeError, "expected one real number"),
    "returns a wrong key": (lambda x: {"loss": bowl(x)}, TypeError, "loss"),
    "returns a text": (lambda x: "1.0", TypeError, "expected one real number"),
    "returns wrong metadata": (lambda x: {"value": 1.0, "metadata": 3}, TypeError, "metadata must be a dict"),
}


@every_method
@pytest.mark.parametrize("on_error", ["raise", "fail"])
@pytest.mark.parametrize(("fun", "error", "reason"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_in_the_program_leaves_the_trial_open_and_the_run_as_it_was(
    path, fun, error, reason, on_error, method
):
    if on_error == "fail" and fun is typo:
        pytest.skip("is told to take exceptions for failures")
    for n_before in (0, 5):
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        if n_before:
            run(storage=path, budget=n_before, method=method)
        with pytest.raises(error) as caught:
            run(fun, storage=path, resume=True, method=method, on_error=on_error)
        assert not any("on_error" in note for note in caught.value.__notes__)
        trial = cylbo.load(path).trials[-1]
        assert (trial.id, trial.status) == (n_before, "open")
        assert reason in trial.reason
        assert bits(run(storage=path, resume=True, method=method).trials) == bits(run(method=method).trials)


def test_a_point_that_raises_again_names_the_way_to_go_on(path):
    for again in (False, True):
        with pytest.raises(ZeroDivisionError) as caught:
            run(typo, storage=path, resume=True)
        assert any("on_error='fail'" in note for note in caught.value.__notes__) == again
    result = run(typo, storage=path, resume=True, on_error="fail", budget=3)
    assert [t.status for t in result.trials] == ["failed"] * 3


def test_a_full_disk_does_not_hide_the_error_of_the_objective(path):
    run(storage=path, budget=2)

    def throw(x):
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
        raise ZeroDivisionError("no mass")

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        with pytest.raises(ZeroDivisionError):
            run(throw, storage=path, resume=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert bits(run(storage=path, resume=True).trials) == bits(run().trials)


def test_on_error_fail_keeps_the_reasons_in_the_file(path):
    def throw(x):
        raise ZeroDivisionError(f"no mass at {x[0]}")

    run(throw, storage=path, on_error="fail", budget=3)
    trials = cylbo.load(path).trials
    assert [t.reason for t in trials] == [f"ZeroDivisionError: no mass at {t.x[0]}" for t in trials]


@pytest.mark.parametrize("reason", ["", "Ünglück 🙁", "two\nlines", "nul \0 inside", "'; DROP TABLE trials; --"])
def test_any_text_may_be_a_reason(path, reason):
    with make(path) as opt:
        opt.fail(opt.ask(), reason)
    assert cylbo.load(path).trials[0].reason == reason


def test_half_characters_in_a_reason_are_spelled_out(path):
    with make(path) as opt:  # as in the names of files that are not UTF-8
        failed = opt.fail(opt.ask(), "no file \udcff.dat")
    assert cylbo.load(path).trials[0].reason == failed.reason == r"no file \udcff.dat"


# ---- another run, or no run at all: refused, and left as it is

OTHERS = {
    "seed": ({"seed": 1}, "another seed: 0, not 1"),
    "bounds": (
        {"bounds": [(-1.0, 2.0), (10.0, 30.0), (-5.0, -4.0 - 1e-15)]},
        r"another space: bounds 2 were \(-5.0, -4.0\), and \(-5.0, -4.0000.*1\) lack some of it; keep or widen them",
    ),
    "parameters": (
        {"bounds": BOX[:2], "center": None, "x0": None, "y0": None},
        "another space: it has 3 parameters, not 2; keep them",
    ),
    "names": (
        {"bounds": cylbo.Space(a=cylbo.Real(-1.0, 2.0)), "center": None, "x0": None, "y0": None},
        "another space: it has plain bounds, not a Space; keep to them",
    ),
    "center": ({"center": [0.0, 20.0, -4.5]}, r"another center: \[0.5, 20.0, -4.75\], not \[0.0, 20.0, -4.5\]"),
    "region": ({"region": "ball"}, "another space: its region is 'box', not 'ball'; keep it"),
    "named method": ({"method": "paper"}, r'another method: .*not "paper"'),
    "custom method": ({"method": dataclasses.replace(CHEAP, n_sobol=65)}, "another method"),
    "nested part": (
        {"method": dataclasses.replace(CHEAP, priors=dataclasses.replace(CHEAP.priors, log_noise=(-21.0, 16.0)))},
        "another method",
    ),
    "function of the method": ({"method": dataclasses.replace(CHEAP, learn=cylbo.PAPER.learn)}, "another method"),
    "x0": ({"x0": [X0[0], X0[1], [1.5, 29.0, -4.9]]}, "another x0"),
    "fewer x0": ({"x0": X0[:2], "y0": [1.0, 2.0]}, "another x0"),
    "y0": ({"y0": [1.0, 2.0, 3.5]}, "another y0"),
    "no y0": ({"y0": None}, "another y0"),
    "noise": ({"noisy": True}, "another noisy: null, not true"),
}
FIRST = {"center": [0.5, 20.0, -4.75], "x0": X0, "y0": [1.0, 2.0, 3.0]}


@pytest.mark.parametrize("storage", [3, b"run.db", True])
def test_a_storage_that_is_no_path_gets_a_clear_error(storage):
    with pytest.raises(TypeError, match="storage must be the path of a file or None, got"):
        make(storage)


@pytest.mark.parametrize("killed", [True, False], ids=["after a kill", "after close"])
@pytest.mark.parametrize(("options", "message"), OTHERS.values(), ids=OTHERS)
def test_a_run_with_other_arguments_is_refused_and_the_file_left_as_it_is(path, options, message, killed):
    opt = make(path, **FIRST)
    opt.tell(opt.ask(), 1.0)
    opt.ask()
    before = bits(opt.trials)
    if killed:
        path = left_by_a_kill(path, opt)
    opt.close()
    stored = files(path)
    with pytest.raises(cylbo.StorageError, match=f"(?s){path}.*{message}.*choose another file"):
        make(path, **FIRST | options)
    with pytest.raises(cylbo.StorageError, match=message):
        run(storage=path, resume=True, **FIRST | options)
    assert files(path) == stored
    with make(path, **FIRST) as opt:
        assert bits(opt.trials) == before


def test_a_named_method_is_not_another_one_of_that_name(path):
    make(path, method="default").close()
    with pytest.raises(cylbo.StorageError, match="another method"):
        make(path, method=CHEAP)
    make(path, method=cylbo.DEFAULT).close()


def test_points_are_not_slipped_into_a_run_that_began_without(path):
    make(path).close()
    with pytest.raises(cylbo.StorageError, match="another x0"):
        make(path, x0=X0)


@pytest.mark.parametrize("killed", [True, False], ids=["after a kill", "after close"])
def test_a_run_that_is_there_is_not_overwritten(path, killed):
    opt = make(path, resume=False)
    opt.ask()
    if killed:
        path = left_by_a_kill(path, opt)
    opt.close()
    stored = files(path)
    for begin in (lambda: make(path, resume=False), lambda: run(storage=path)):
        with pytest.raises(cylbo.StorageError, match=f"{path} exists; pass resume=True"):
            begin()
    assert files(path) == stored
    with make(path) as opt:
        assert len(opt.trials) == 1


def broken(path, intact):
    """Neither loaded nor resumed nor overwritten, and left as it is; the lock is free for what is put in its place."""
    stored = files(path)
    for attempt in (lambda: cylbo.load(path), lambda: make(path), lambda: make(path, resume=False)):
        with pytest.raises(cylbo.StorageError, match=str(path)):
            attempt()
    assert files(path) == stored
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    shutil.copy(intact, path)
    with make(path) as opt:
        assert len(opt.ask().x) == 3


@pytest.fixture
def intact(tmp_path):
    """The file of a run with an open trial, a failed one and a state."""
    path = tmp_path / "intact.db"
    with make(path) as opt:
        for i in range(5):
            trial = opt.ask()
            opt.fail(trial, "diverged") if i == 1 else opt.tell(trial, bowl(trial.x))
        opt.ask()
    return path


@pytest.mark.parametrize(
    "content", [b"xy", b"not a database\n" * 1000, b"\0" * 8192, b"SQLite format 3\0" + b"\1" * 99]
)
def test_a_file_that_is_no_database_is_refused(path, intact, content):
    path.write_bytes(content)
    broken(path, intact)


@pytest.mark.parametrize(
    "script", ["CREATE TABLE songs (name TEXT)", "CREATE TABLE trials (id); PRAGMA user_version=1"]
)
def test_a_database_of_something_else_is_refused(path, intact, script):
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(script)
    broken(path, intact)


@pytest.mark.parametrize("share", [0.002, 0.02, 0.2, 0.4, 0.6, 0.8])
def test_a_file_that_was_cut_is_refused(path, intact, share):
    path.write_bytes(intact.read_bytes()[: int(share * intact.stat().st_size)])
    broken(path, intact)


NAN = "x'000000000000f87f'"
DAMAGES = {
    "newer format": "PRAGMA user_version=4",
    "metadata that is no JSON": "UPDATE trials SET metadata = 'x' WHERE id = 1",
    "metadata that is no dict": "UPDATE trials SET metadata = '[1]' WHERE id = 1",
    "a point that waits and is none": "INSERT INTO waiting VALUES (0, x'00')",
    "a point that waits at infinity": f"INSERT INTO waiting VALUES (0, x'{np.full(3, np.inf).tobytes().hex()}')",
    "no points that wait": "DROP TABLE waiting",
    "no trials": "DROP TABLE trials",
    "no memory": "DROP TABLE memory",
    "no header": "DROP TABLE header",
    "point of one byte": "UPDATE trials SET x = x'00' WHERE id = 2",
    "point without a byte": "UPDATE trials SET x = x'' WHERE id = 2",
    "point too short": "UPDATE trials SET x = substr(x, 1, 16) WHERE id = 2",
    "point too long": "UPDATE trials SET x = CAST(x || x AS BLOB) WHERE id = 2",
    "point as text": "UPDATE trials SET x = 'abcdefghabcdefghabcdefgh' WHERE id = 2",
    "point that is no number": f"UPDATE trials SET x = CAST(substr(x, 1, 16) || {NAN} AS BLOB) WHERE id = 2",
    "unknown status": "UPDATE trials SET status = 'lost' WHERE id = 2",
    "open with a value": "UPDATE trials SET status = 'open' WHERE id = 2",
    "failed with a value": "UPDATE trials SET status = 'failed' WHERE id = 2",
    "done without a value": "UPDATE trials SET value = NULL WHERE id = 2",
    "infinite value": "UPDATE trials SET value = 9e999 WHERE id = 2",
    "value as text": "UPDATE trials SET value = 'high' WHERE id = 2",
    "seconds as text": "UPDATE trials SET seconds = 'long' WHERE id = 2",
    "reason as a number": "UPDATE trials SET reason = x'ff' WHERE id = 1",
    "text that is none": "UPDATE trials SET reason = CAST(x'ff' AS TEXT) WHERE id = 1",
    "missing trial": "DELETE FROM trials WHERE id = 2",
    "missing first trial": "DELETE FROM trials WHERE id = 0",
    "negative id": "UPDATE trials SET id = -1 WHERE id = 0",
    "header without a seed": "DELETE FROM header WHERE name = 'seed'",
    "header without a method": "DELETE FROM header WHERE name = 'method'",
    "header without a space": "DELETE FROM header WHERE name = 'space'",
    "header without x0": "DELETE FROM header WHERE name = 'x0'",
    "header without a word on noise": "DELETE FROM header WHERE name = 'noisy'",
    "noise that is none of the three": "UPDATE header SET json = '1' WHERE name = 'noisy'",
    "header that never ends": f"UPDATE header SET json = '{'[' * 100_000}' WHERE name = 'method'",
    "header that is no JSON": "UPDATE header SET json = '{' WHERE name = 'space'",
    "space that is none": "UPDATE header SET json = '[]' WHERE name = 'space'",
    "space without bounds": "UPDATE header SET json = '{}' WHERE name = 'space'",
    "space without an end": "UPDATE header SET json = json_remove(json, '$.low') WHERE name = 'space'",
    "space of fewer bounds": "UPDATE header SET json = json_remove(json, '$.low[0]', '$.high[0]') WHERE name = 'space'",
    "seed as text": "UPDATE header SET json = '\"x\"' WHERE name = 'seed'",
    "negative seed": "UPDATE header SET json = '-1' WHERE name = 'seed'",
    "x0 of another dimension": "UPDATE header SET json = '[[1.0]]' WHERE name = 'x0'",
    "x0 that have no order": "UPDATE header SET json = '{}' WHERE name = 'x0'",
    "x0 that are no numbers": "UPDATE header SET json = '[[NaN, 11.0, -4.5]]' WHERE name = 'x0'",
    "x0 that are no points": "UPDATE header SET json = '[1.0]' WHERE name = 'x0'",
    "y0 without x0": "UPDATE header SET json = '[1.0]' WHERE name = 'y0'",
    "header without its noise": "DELETE FROM header WHERE name = 'noisy'",
    "noise as text": "UPDATE header SET json = '\"yes\"' WHERE name = 'noisy'",
    "negative std": "UPDATE trials SET std = -0.5 WHERE id = 2",
    "infinite std": "UPDATE trials SET std = 9e999 WHERE id = 2",
    "std as text": "UPDATE trials SET std = 'much' WHERE id = 2",
    "constraints that are no JSON": "UPDATE trials SET constraints = '[' WHERE id = 2",
    "constraints that are no list": "UPDATE trials SET constraints = '{}' WHERE id = 2",
    "constraints as text": """UPDATE trials SET constraints = '["a"]' WHERE id = 2""",
    "infinite constraints": "UPDATE trials SET constraints = '[Infinity]' WHERE id = 2",
    "info that is no JSON": "UPDATE trials SET info = '{' WHERE id = 2",
    "info that is no dict": "UPDATE trials SET info = '[]' WHERE id = 2",
    "info that is no number": 'UPDATE trials SET info = \'{"predicted": "x"}\' WHERE id = 2',
    "memory that is no JSON": "UPDATE memory SET json = 'fits'",
    "memory that is a list": "UPDATE memory SET json = '[]'",
    "memory that is empty": "UPDATE memory SET json = '{}'",
    "memory without limits": "UPDATE memory SET json = json_remove(json, '$.limits')",
    "limits that are a list": "UPDATE memory SET json = json_set(json, '$.limits', json('[]'))",
    "limits that are no fits": """UPDATE memory SET json = json_set(json, '$.limits', json('{"failure": {}}'))""",
    "limits that were sampled": """UPDATE memory SET json = json_set(
        json, '$.limits', json('{"failure": {"kind": "chain", "theta": [0.0], "widths": [1.0]}}'))""",
    "state without a kind": "UPDATE memory SET json = json_set(json, '$.state', json('{}'))",
    "state of an unknown kind": """UPDATE memory SET json = json_set(json, '$.state', json('{"kind": "oracle"}'))""",
    "state that lacks a part": "UPDATE memory SET json = json_remove(json, '$.state.told_noise')",
    "state fitted at no number": "UPDATE memory SET json = json_set(json, '$.state.fitted_at', 'often')",
    "state with a number too few": "UPDATE memory SET json = json_remove(json, '$.state.thetas[0][1][0]')",
    "state with text among its numbers": "UPDATE memory SET json = json_set(json, '$.state.thetas[0][1][0]', 'a')",
    "state without its form": "UPDATE memory SET json = json_set(json, '$.state.thetas', json('[]'))",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_file_with_something_wrong_in_it_is_refused(path, intact, damage):
    shutil.copy(intact, path)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.executescript(damage)
    broken(path, intact)


def test_a_newer_format_is_called_by_its_name(intact):
    with contextlib.closing(sqlite3.connect(intact)) as db:
        db.execute("PRAGMA user_version=4")
    with pytest.raises(cylbo.StorageError, match="has format 4, this cylbo reads 2 and 3; install a newer cylbo"):
        cylbo.load(intact)


@pytest.mark.parametrize("flip", [0x01, 0x80, 0xFF])
def test_whatever_byte_is_flipped_nothing_but_a_storage_error_comes_of_it(path, intact, flip):
    """The numbers themselves have no check sum: a file in which one was changed may be read, but is sound otherwise."""
    content = intact.read_bytes()
    outcomes = []
    for position in [*range(100), *range(100, len(content), 61)]:
        path.write_bytes(content[:position] + bytes([content[position] ^ flip]) + content[position + 1 :])
        stored = files(path)
        try:
            result = cylbo.load(path)
        except cylbo.StorageError:
            outcomes.append("refused")
        else:
            outcomes.append("read")
            assert [t.id for t in result.trials] == list(range(len(result.trials)))
            assert all(t.x.shape == (3,) and np.isfinite(t.x).all() for t in result.trials)
            assert all(math.isfinite(t.value) == (t.status == "done") for t in result.trials)
        with contextlib.suppress(cylbo.StorageError):
            make(path).close()
        if outcomes[-1] == "refused":
            assert files(path) == stored
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
    assert set(outcomes) == {"refused", "read"}


@pytest.mark.parametrize("begin", [make, lambda path: run(storage=path)])
def test_a_folder_is_no_file(tmp_path, begin, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in (tmp_path, pathlib.Path("."), "", "/"):
        with pytest.raises(cylbo.StorageError, match="is a folder"):
            begin(folder)
    assert not list(tmp_path.iterdir())
    with pytest.raises(cylbo.StorageError, match="cannot be used"):
        cylbo.load(tmp_path)


def test_a_pipe_is_no_file(path):
    os.mkfifo(path)
    for begin in (make, cylbo.load):
        with pytest.raises(cylbo.StorageError, match="is no plain file"):
            begin(path)


def test_a_missing_folder_is_not_made(tmp_path):
    with pytest.raises(cylbo.StorageError, match=f"there is no folder {tmp_path / 'runs'} .*make it first"):
        make(tmp_path / "runs" / "run.db")
    assert not list(tmp_path.iterdir())


def test_a_missing_file_is_not_loaded_and_not_made(tmp_path):
    with pytest.raises(cylbo.StorageError, match="there is no file"):
        cylbo.load(tmp_path / "run.db")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["x" * 5000, "circle"], ids=["too long", "circle"])
def test_a_name_that_leads_nowhere_gets_a_clear_error(tmp_path, name):
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    for begin in (make, cylbo.load):
        with pytest.raises(cylbo.StorageError, match=rf"{name}.*; (choose another|check the) name"):
            begin(tmp_path / name)
    assert [each.name for each in tmp_path.iterdir()] == ["circle"]


@pytest.mark.parametrize("lock", ["a folder", "no database"])
def test_a_lock_that_cannot_be_taken_gets_a_clear_error(path, lock):
    beside = path.with_name("run.db-lock")
    beside.mkdir() if lock == "a folder" else beside.write_text("mine" * 1000)
    with pytest.raises(cylbo.StorageError, match=r"run\.db-lock, which marks run\.db as in use, cannot be written"):
        make(path)
    assert not path.exists()
    beside.rmdir() if lock == "a folder" else beside.unlink()
    make(path).close()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anything")
def test_a_folder_that_must_not_be_written_is_refused(tmp_path, intact):
    folder = tmp_path / "locked"
    folder.mkdir()
    shutil.copy(intact, folder / "there.db")
    stored = files(folder / "there.db")
    folder.chmod(0o500)
    try:
        for name in ("new.db", "there.db"):
            with pytest.raises(cylbo.StorageError, match="cannot be written"):
                make(folder / name)
        assert bits(cylbo.load(folder / "there.db").trials) == bits(cylbo.load(intact).trials)
        assert files(folder / "there.db") == stored
    finally:
        folder.chmod(0o700)
    make(folder / "there.db").close()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anything")
def test_a_file_that_must_not_be_written_is_loaded_but_not_written(intact):
    before, stored = bits(cylbo.load(intact).trials), files(intact)[intact.name]
    intact.chmod(0o400)
    with pytest.raises(cylbo.StorageError, match="readonly"), make(intact) as opt:
        opt.ask()
    assert files(intact)[intact.name] == stored
    assert bits(cylbo.load(intact).trials) == before
    intact.chmod(0o600)
    with make(intact) as opt:
        opt.ask()


# ---- one at a time


def test_a_second_optimizer_is_refused_until_the_first_lets_go(path):
    first = make(path)
    first.tell(first.ask(), 2.5)
    for resume in (True, False):
        with pytest.raises(cylbo.StorageError, match=r"in use by another optimizer.*close\(\) that one or wait"):
            make(path, resume=resume)
    with pytest.raises(cylbo.StorageError, match="in use"):
        run(storage=path, resume=True)
    assert cylbo.load(path).func_vals.tolist() == [2.5]  # reading is no use
    first.tell(first.ask(), 1.5)
    assert cylbo.load(path).func_vals.tolist() == [2.5, 1.5]
    first.close()
    with make(path) as second:
        assert [t.value for t in second.trials] == [2.5, 1.5]


def test_a_link_to_the_file_leads_to_the_same_lock(path):
    link = path.with_name("link.db")
    link.symlink_to(path)
    with make(link) as opt:
        opt.ask()
        with pytest.raises(cylbo.StorageError, match="in use"):
            make(path)
    with make(path) as opt:
        assert len(opt.trials) == 1


@pytest.mark.parametrize("by", ["kill", "end"])
def test_another_process_keeps_the_file_until_its_end(path, by):
    program = f"""
import test_storage
opt = test_storage.make({str(path)!r})
opt.tell(opt.ask(), 2.5)
opt.ask()
print("ready", flush=True)
input()
"""
    here = pathlib.Path(__file__).parent
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=here, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "ready\n"
        with pytest.raises(cylbo.StorageError, match="in use by another optimizer, here or in another process"):
            make(path)
        result = cylbo.load(path)
        assert result.func_vals.tolist() == [2.5]
        assert [t.status for t in result.trials] == ["done", "open"]
        if by == "kill":
            other.kill()
        else:
            other.stdin.write("\n")
            other.stdin.flush()
        assert other.wait() == (-signal.SIGKILL if by == "kill" else 0)
    with make(path) as opt:
        assert bits(opt.trials) == bits(result.trials)


def test_the_file_is_let_go_however_the_block_is_left(path):
    with pytest.raises(ZeroDivisionError), make(path) as opt:
        opt.tell(opt.ask(), 1 / 0)
    make(path).close()
    with pytest.raises(ZeroDivisionError):
        run(lambda x: 1 / 0, storage=path, resume=True)
    make(path).close()


def test_closing_twice_is_fine_and_asking_after_it_is_not(path):
    with make(path) as opt:
        trial = opt.ask()
        opt.close()
        before = bits(opt.trials)
        for call in (opt.ask, lambda: opt.tell(trial, 1.0), lambda: opt.fail(trial)):
            with pytest.raises(cylbo.StorageError, match=r"let go of by close\(\).*resume=True"):
                call()
        assert bits(opt.trials) == before
    assert opt.best is None
    assert bits(make(path).trials) == before


def test_without_a_file_closing_does_nothing():
    with cylbo.Optimizer(BOX, seed=0, method=CHEAP) as opt:
        opt.close()
        opt.tell(opt.ask(), 1.0)
    assert opt.best.value == 1.0


def test_any_thread_may_tell(path):
    with make(path) as opt:
        trial = opt.ask()
        thread = threading.Thread(target=opt.tell, args=(trial, 1.5))
        thread.start()
        thread.join()
    assert cylbo.load(path).func_vals.tolist() == [1.5]


# ---- a disk that takes no more


@contextlib.contextmanager
def full_disk():
    """Files of this process cannot grow; the system says so at the write, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


CALLS = {
    "ask": lambda opt: opt.ask(),
    "tell": lambda opt: opt.tell(3, 1.5),
    "fail": lambda opt: opt.fail(3, "diverged"),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_what_cannot_be_written_has_not_happened_and_may_be_repeated(path, call):
    calm = cylbo.Optimizer(BOX, seed=0, method=CHEAP)
    with make(path) as opt:
        for each in (opt, calm):
            for _ in range(3):
                trial = each.ask()
                each.tell(trial, bowl(trial.x))
            each.ask()
        before = bits(opt.trials)
        for _ in range(2):
            with pytest.raises(cylbo.StorageError, match=str(path)) as caught, full_disk():
                call(opt)
            assert isinstance(caught.value.__cause__, sqlite3.OperationalError)
            assert bits(opt.trials) == before == bits(cylbo.load(path).trials)
        for each in (opt, calm):
            call(each)
            each.ask()
        assert bits(opt.trials) == bits(calm.trials) == bits(cylbo.load(path).trials)
    with make(path) as again:
        again.ask()
        calm.ask()
        assert bits(again.trials) == bits(calm.trials)


class Failing:
    """A connection on which one kind of statement fails, of many the last."""

    def __init__(self, db, word):
        self.db, self.word = db, word

    def execute(self, sql, *parameters):
        if sql.startswith(self.word):
            raise sqlite3.OperationalError("database or disk is full")
        return self.db.execute(sql, *parameters)

    def executemany(self, sql, rows):
        if not sql.startswith(self.word):
            return self.db.executemany(sql, rows)
        self.db.executemany(sql, list(rows)[:-1])
        raise sqlite3.OperationalError("database or disk is full")

    def __getattr__(self, name):
        return getattr(self.db, name)


@pytest.mark.parametrize("word", ["BEGIN", "INSERT OR REPLACE INTO trials", "INSERT OR REPLACE INTO memory", "COMMIT"])
def test_an_ask_is_stored_whole_or_not_at_all_wherever_it_fails(path, word):
    with make(path) as opt:
        for _ in range(3):
            trial = opt.ask()
            opt.tell(trial, bowl(trial.x))
        store = opt._store
        db, before = store._db, bits(opt.trials)
        store._db = Failing(db, word)
        with pytest.raises(cylbo.StorageError, match="database or disk is full"):
            opt.ask()
        store._db = db
        assert not db.in_transaction
        assert bits(opt.trials) == before == bits(cylbo.load(path).trials)
        opt.ask()
        calm = run(budget=4)
        assert [t.x.tobytes() for t in opt.trials] == [t.x.tobytes() for t in calm.trials]


def test_a_disk_that_is_full_from_the_start_gets_a_clear_error_and_nothing_is_in_the_way_later(path):
    with pytest.raises(cylbo.StorageError, match=str(path)), full_disk():
        make(path)
    with make(path, resume=False) as opt:
        opt.ask()


def test_minimize_on_a_full_disk_loses_nothing_that_was_told(path):
    disk = contextlib.ExitStack()

    def fun(x):
        if len(cylbo.load(path).trials) == 4:
            disk.enter_context(full_disk())
        return bowl(x)

    with pytest.raises(cylbo.StorageError) as caught, disk:
        run(fun, storage=path)
    assert caught.value.result.nfev == 3
    result = run(storage=path, resume=True)
    assert bits(result.trials) == bits(run().trials)


# ---- what a file gives back


def test_a_file_gives_back_what_minimize_returned(path):
    values = iter([3.0, math.nan, 1.5, math.inf, 2.0])
    result = run(lambda x: next(values), storage=path, budget=5, x0=X0, y0=[5.0, 4.0, 6.0])
    stored = cylbo.load(path)
    assert isinstance(stored, cylbo.Result)
    assert stored.message == "loaded 5 evaluations"
    assert (stored.nfev, stored.fun, stored.success) == (result.nfev, result.fun, result.success) == (5, 1.5, True)
    assert stored.x.tobytes() == result.x.tobytes()
    assert stored.x_iters.tobytes() == result.x_iters.tobytes()
    assert stored.func_vals.tobytes() == result.func_vals.tobytes()
    assert bits(stored.trials) == bits(result.trials)
    assert [t.seconds for t in stored.trials] == [t.seconds for t in result.trials]
    stored.x[:] = 7.0  # the caller's to change
    with pytest.raises(ValueError, match="read-only"):
        stored.trials[0].x[0] = 7.0
    assert files(path).keys() == {"run.db"}


def outcome(x):
    return {"value": bowl(x), "std": 0.1 + abs(x[0]) / 3.0, "constraints": [x[0] - 1.0 / 3.0, -x[1]]}


def test_noise_and_constraints_come_back_bit_by_bit_and_the_run_goes_on_with_them(path):
    calm = run(outcome, budget=8)
    for n in (3, 5, 8):
        run(outcome, budget=n, storage=path, resume=True)
    stored = cylbo.load(path)
    assert bits(stored.trials) == bits(calm.trials)
    assert all(trial.constraints == tuple(outcome(trial.x)["constraints"]) for trial in stored.trials)
    assert [trial.std for trial in stored.trials] == [outcome(trial.x)["std"] for trial in stored.trials]


def test_what_was_not_told_comes_back_as_such(path):
    with make(path) as opt:
        opt.tell(opt.ask(), 1.0)
        opt.tell(opt.ask(), 1.0, std=0.0)
        opt.fail(opt.ask())
    assert [repr(trial.std) for trial in cylbo.load(path).trials] == ["nan", "0.0", "nan"]
    assert [trial.constraints for trial in cylbo.load(path).trials] == [()] * 3


def test_the_number_of_constraints_is_kept_too(path):
    with make(path) as opt:
        opt.tell(opt.ask(), 1.0, constraints=[1.0, 2.0])
    with make(path) as opt, pytest.raises(ValueError, match="expected 2 constraints as with trial 0, got 1"):
        opt.tell(opt.ask(), 1.0, constraints=[1.0])


@pytest.mark.parametrize("budget", [{"max_suggest_seconds": 1e-9}, {"max_suggest_seconds": 1e6}, {"max_memory": 1}])
def test_what_a_budget_left_room_for_comes_back(path, budget):
    result = run(budget=6, storage=path, noisy=False, **budget)
    stored = cylbo.load(path)
    assert bits(stored.trials) == bits(result.trials)
    for trial in stored.trials[2:]:
        assert {"acquisition", "points", "fit_points", "candidates"} <= set(trial.suggestion.to_json())
        assert (trial.suggestion.points, trial.suggestion.fit_points) == (trial.id, trial.id)
    assert [trial.suggestion.to_json() for trial in stored.trials[:2]] == [{}, {}]


def test_a_run_may_go_on_with_another_budget(path):
    # It is no part of what the run is about, and another machine may need another one
    run(budget=3, storage=path, noisy=False, max_memory=1e9)
    result = run(budget=5, storage=path, noisy=False, resume=True)
    assert [trial.suggestion.points is not None for trial in result.trials] == [False, False, True, False, False]
    again = run(budget=6, storage=path, noisy=False, resume=True, max_suggest_seconds=1e6)
    assert again.trials[-1].suggestion.points == 5


def test_a_run_that_goes_on_is_as_well_as_it_was(path):
    with make(path) as opt:
        for i in range(13):
            trial = opt.ask()
            opt.fail(trial) if i % 6 == 4 else opt.tell(trial, **outcome(trial.x))
        health = opt.health()
    assert health.evaluations == 11
    assert math.isfinite(health.calibration)
    with make(path) as opt:
        assert repr(opt.health()) == repr(health)


def test_a_file_without_a_success_says_so(path):
    make(path).close()
    nothing = cylbo.load(path)
    assert (nothing.nfev, nothing.success) == (0, False)
    with pytest.raises(cylbo.NoResultError, match="no evaluation succeeded"):
        _ = nothing.x
    assert nothing.x_iters.shape == (0, 3)
    assert nothing.message == "loaded 0 evaluations; no evaluation succeeded"
    run(lambda x: math.nan, storage=path, resume=True, budget=2)
    failed = cylbo.load(path)
    assert failed.message == "loaded 2 evaluations; no evaluation succeeded"
    assert np.isnan(failed.func_vals).tolist() == [True, True]


def test_earlier_values_are_the_best_of_a_file_without_evaluations(path):
    make(path, x0=X0, y0=[5.0, 4.0, 6.0]).close()
    stored = cylbo.load(path)
    assert (stored.fun, stored.x.tolist(), stored.nfev, stored.success) == (4.0, X0[1], 0, True)


@pytest.mark.parametrize("options", [{}, {"x0": X0}, {"x0": X0, "y0": [5.0, 4.0, 6.0]}])
def test_the_budget_counts_what_is_stored(path, options):
    seen = []

    def fun(x):
        seen.append(x)
        return bowl(x)

    assert run(fun, budget=4, storage=path, **options).nfev == len(seen) == 4
    for budget, message in (
        (4, "used the budget of 4 evaluations"),
        (1, "the budget of 1 evaluations had been used: the file holds 4"),
    ):
        again = run(fun, budget=budget, storage=path, resume=True, **options)
        assert len(seen) == 4
        assert (again.nfev, again.success, again.message) == (4, True, message)
    assert run(fun, budget=6, storage=path, resume=True, **options).nfev == len(seen) == 6


def test_progress_counts_what_is_stored(path, capsys):
    run(budget=3, storage=path)
    run(budget=3, storage=path, resume=True, progress=True)
    assert "3/3" in capsys.readouterr().err


def test_the_callback_gets_new_evaluations_only(path):
    run(budget=3, storage=path)
    got = []
    run(budget=5, storage=path, resume=True, callback=got.append)
    assert [t.id for t in got] == [3, 4]


ODD = [5e-324, -5e-324, 2.2250738585072014e-308, -0.0, 0.0, 0.1, 1.0 / 3.0, 8e307, -8e307, 1.0, -3.0, math.pi * 1e15]


@pytest.mark.parametrize("y0", [None, ODD])
def test_points_and_values_come_back_bit_by_bit(path, y0):
    bounds, x0 = [(-8e307, 8e307)] * 2, [[v, -v] for v in ODD]
    with make(path, bounds=bounds, x0=x0, y0=y0) as opt:
        if y0 is None:
            for value in ODD[:7]:
                opt.tell(opt.ask(), value)
    with make(path, bounds=bounds) as opt:
        if y0 is None:
            for value in ODD[7:]:
                opt.tell(opt.ask(), value)
    stored = cylbo.load(path)
    points, values = np.stack([t.x for t in stored.trials]), np.array([t.value for t in stored.trials])
    assert points.tobytes() == np.array(x0).tobytes()
    assert values.tobytes() == np.array(ODD).tobytes()


def test_the_largest_values_come_back(path):
    with make(path) as opt:
        for value in (1e308, sys.float_info.max, -sys.float_info.max):
            opt.tell(opt.ask(), value)
    assert cylbo.load(path).func_vals.tolist() == [1e308, sys.float_info.max, -sys.float_info.max]


@pytest.mark.parametrize(
    "name",
    [
        "with space.db",
        "a#b.db",
        "a?mode=ro.db",
        "100%41.db",
        "Größe-π-🙂.db",
        "no suffix",
        ":memory:",
        "file:x",
        "'q';--",
    ],
)
def test_any_name_will_do(tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / f"in {name}"
    folder.mkdir()
    for path in (name, folder / name):
        run(budget=2, storage=path)
        assert bits(run(budget=3, storage=path, resume=True).trials) == bits(run(budget=3).trials)
        assert pathlib.Path(path).stat().st_size > 0
    assert {each.name for each in folder.iterdir()} == {name}
    assert {each.name for each in tmp_path.iterdir()} == {name, folder.name}
    assert cylbo.load(name).nfev == cylbo.load(folder / name).nfev == 3


def test_the_file_says_what_the_run_is_a_function_of(path):
    """For whoever opens it without us."""
    make(path, seed=2**70, **FIRST).close()
    with contextlib.closing(sqlite3.connect(path)) as db:
        header = {name: json.loads(text) for name, text in db.execute("SELECT name, json FROM header")}
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert header["space"] == {
        "low": [-1.0, 10.0, -5.0], "high": [2.0, 30.0, -4.0], "center": FIRST["center"], "region": "box",
    }  # fmt: skip
    assert (header["seed"], header["x0"], header["y0"]) == (2**70, X0, FIRST["y0"])
    assert header["method"]["n_sobol"] == CHEAP.n_sobol
    assert header["method"]["learn"] == "fitted"
    assert header["cylbo"] == cylbo.__version__
    with make(path, seed=2**70, **FIRST) as opt:
        assert opt.seed == 2**70


def test_a_foreign_file_of_a_few_bytes_is_not_taken_for_a_blank_one(tmp_path):
    path = tmp_path / "notes.txt"
    for content in (b"x", b"hello", b"x" * 99):
        path.write_bytes(content)
        with pytest.raises(cylbo.StorageError):
            cylbo.Optimizer([(0, 1)], storage=path, resume=True)
        assert path.read_bytes() == content


def test_a_seed_that_cannot_be_written_is_refused_and_no_file_made(path):
    assert make(None, seed=10**5000, resume=False).ask().id == 0
    with pytest.raises(ValueError, match="4300 digits"):
        make(path, seed=10**5000)
    assert not path.exists()
    make(path, resume=False).close()


def test_resume_without_a_file_is_refused():
    with pytest.raises(ValueError, match="storage="):
        cylbo.Optimizer([(0, 1)], resume=True)
    with pytest.raises(ValueError, match="storage="):
        cylbo.minimize(sum, [(0, 1)], budget=1, resume=True)


def test_a_run_and_the_results_of_the_lab_are_not_taken_for_one_another(tmp_path):
    run, results = tmp_path / "run.db", tmp_path / "results.db"
    cylbo.Optimizer([(0, 1)], storage=run).close()
    with bench_store.Store(results):
        pass
    before = run.read_bytes(), results.read_bytes()
    with pytest.raises(cylbo.StorageError, match="is not a run of cylbo"):
        cylbo.Optimizer([(0, 1)], storage=results, resume=True)
    with pytest.raises(cylbo.StorageError, match="is not a run of cylbo"):
        cylbo.load(results)
    with pytest.raises(bench_store.StoreError):
        bench_store.Store(run)
    assert (run.read_bytes(), results.read_bytes()) == before


def test_of_two_long_descriptions_the_difference_is_shown(tmp_path):
    path = tmp_path / "run.db"
    cylbo.Optimizer([(0, 1)] * 50, storage=path).close()
    with pytest.raises(cylbo.StorageError, match=r"another center: .*0\.5, 0\.5.*, not .*0\.5, 0\.75") as caught:
        cylbo.Optimizer([(0, 1)] * 50, center=[0.5] * 40 + [0.75] + [0.5] * 9, storage=path, resume=True)
    assert len(str(caught.value)) < 400
