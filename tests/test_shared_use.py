"""One optimizer in many hands: threads that ask and tell at once, child processes, copies, and what stays on disk."""

import copy
import dataclasses
import json
import multiprocessing
import os
import pathlib
import pickle
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import cylbo
from cylbo.store.lock import Lock
from files import continued
from test_storage import BOX, CHEAP, bits, bowl, in_a_program, make, run

THREADS, EACH = 8, 50


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.db"


# ---- threads


@pytest.mark.parametrize("stored", [True, False], ids=["stored", "in memory"])
def test_eight_threads_ask_evaluate_and_tell_and_nothing_is_lost(path, stored):
    opt = cylbo.Optimizer(BOX, seed=0, method=CHEAP, storage=path if stored else None)
    told, gate = [], threading.Barrier(THREADS)

    def work(number):
        gate.wait()
        for i in range(EACH):
            trial = opt.ask()
            kind = (number + i) % 10
            if kind == 7:
                told.append(opt.fail(trial, "by rule"))
            elif kind == 8:
                told.append(opt.cancel(trial.id))
            else:
                told.append(opt.tell(trial, bowl(trial.x), metadata={"thread": number}))
            if kind == 3:
                told.append(opt.add(trial.x + 1e-3 * (number + 1) * (0.5 - (trial.x > [0.5, 20, -4.5])), 5.0))
            if kind == 4:
                assert opt.best is not None
                assert opt.pending is not None
                assert len(opt.trials) > 0
            if i == 25:
                assert opt.health().evaluations > 0

    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(work, number) for number in range(THREADS)]:
            done.result()
    opt.close()
    trials = opt.trials
    assert [trial.id for trial in trials] == list(range(len(trials)))
    assert sorted(trial.id for trial in told) == [trial.id for trial in trials]
    assert sum(trial.origin != "added" for trial in trials) == THREADS * EACH
    assert bits(sorted(told, key=lambda trial: trial.id)) == bits(trials)
    asked = [trial.x.tobytes() for trial in trials if trial.status != "cancelled"]
    assert len(set(asked)) == len(asked)
    if stored:
        assert bits(cylbo.load(path).trials) == bits(trials)
        with make(path) as again:
            assert bits(again.trials) == bits(trials)


def test_a_tell_does_not_wait_for_an_ask(monkeypatch):
    """The ask is held up for as long as the test wants; the tell must come back meanwhile."""
    opt = cylbo.Optimizer(BOX, seed=0, method=CHEAP)
    for _ in range(3):
        opt.tell(opt.ask(), 1.0)
    trial = opt.ask()
    reached, go_on = threading.Event(), threading.Event()
    suggest = cylbo.run.optimizer.suggest

    def held_up(*arguments):
        reached.set()
        assert go_on.wait(60)
        return suggest(*arguments)

    monkeypatch.setattr("cylbo.run.optimizer.suggest", held_up)
    with ThreadPoolExecutor(2) as pool:
        asked = pool.submit(opt.ask)
        assert reached.wait(60)
        told = pool.submit(opt.tell, trial, 2.0)
        try:
            assert told.result(60).value == 2.0
            assert opt.best.value == 1.0
            assert len(opt.trials) == 4
        finally:
            go_on.set()
        assert asked.result(60).id == 4
    assert [t.status for t in opt.trials] == ["done"] * 4 + ["open"]


def test_asks_at_the_same_time_give_the_points_of_asks_one_after_the_other():
    twin, opt = (cylbo.Optimizer(BOX, seed=0, method=CHEAP) for _ in range(2))
    with ThreadPoolExecutor(4) as pool:
        trials = [each.result() for each in [pool.submit(opt.ask) for _ in range(6)]]
    assert bits(sorted(trials, key=lambda trial: trial.id)) == bits(twin.ask(6))


# ---- child processes


def in_a_fork(function):
    """What a forked child makes of it: the text of its error, or "no error"."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            function()
            said = "no error"
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    os.waitpid(pid, 0)
    return said


def called(function, path):
    """Call a function of this file in a process that may fork."""
    in_a_program(f"import pathlib, test_shared_use as t; t.{function.__name__}(pathlib.Path({str(path)!r}))")


def parent_and_forks(path):
    opt = make(path)
    trial = opt.ask()
    calls = {
        "ask": opt.ask, "tell": lambda: opt.tell(trial, 1.0), "fail": lambda: opt.fail(trial),
        "cancel": lambda: opt.cancel(trial), "add": lambda: opt.add(trial.x, 1.0),
        "add_failed": lambda: opt.add_failed(trial.x), "enqueue": lambda: opt.enqueue(trial.x + 0.1),
    }  # fmt: skip
    for name, call in calls.items():
        said = in_a_fork(call)
        assert said.startswith(f"StorageError: {path} is held by the process {os.getpid()}, and this one ("), name
        assert "let this process evaluate: hand it the point, and hand the value back" in said
    # What the child closes, or lets go of in other ways, stays open here
    assert in_a_fork(opt.close) == "no error"
    assert in_a_fork(lambda: [opt.trials, opt.best, opt.pending]) == "no error"
    assert in_a_fork(lambda: opt._store._let_go()) == "no error"
    opt.tell(trial, 2.0)
    with pytest.raises(cylbo.StorageError, match="in use"):
        make(path)
    opt.close()
    assert [t.value for t in cylbo.load(path).trials] == [2.0]


def test_a_forked_child_cannot_use_the_file_of_its_parent(path):
    called(parent_and_forks, path)


def fork_while_a_thread_asks(path):
    opt, held, over = make(path), threading.Event(), threading.Event()

    def hold():
        with opt._asking, opt._lock:
            held.set()
            over.wait()

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    held.wait()
    # What waits for ever is ended by the alarm
    assert in_a_fork(lambda: [signal.alarm(10), opt.trials, opt.close()]) == "no error"
    over.set()
    thread.join()


def test_a_child_does_not_wait_for_a_thread_that_was_not_forked(path):
    called(fork_while_a_thread_asks, path)


def test_a_copy_is_made_of_nothing_that_changes_later():
    opt = cylbo.Optimizer(BOX, seed=0, method=CHEAP)
    opt.ask()
    state = opt.__getstate__()
    before = pickle.dumps(state)
    opt.enqueue([0.25, 25.0, -4.75])
    opt.tell(opt.ask(), 1.0)
    opt.ask()
    assert pickle.dumps(state) == before


def pool_of_forks(path):
    with make(path) as opt, multiprocessing.get_context("fork").Pool(2) as pool:
        for _ in range(3):
            batch = opt.ask(2)
            for trial, value in zip(batch, pool.map(bowl, [trial.x for trial in batch]), strict=True):
                opt.tell(trial, value)
        pool.close()
        pool.join()
    assert [t.status for t in cylbo.load(path).trials] == ["done"] * 6


def test_a_forked_pool_may_evaluate_for_its_parent(path):
    called(pool_of_forks, path)


# ---- copies

COPIES = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": lambda opt: pickle.loads(pickle.dumps(opt))}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_an_optimizer_with_a_file_is_not_copied(path, copied):
    with make(path) as opt:
        opt.ask()
        with pytest.raises(TypeError, match=r"one file belongs to one optimizer; close\(\) it and go on with .*resume"):
            copied(opt)
        opt.tell(0, 1.0)


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_a_copy_in_memory_goes_on_as_the_original_and_leaves_it_alone(copied):
    opt = cylbo.Optimizer(BOX, seed=0, method=CHEAP)
    for _ in range(5):
        opt.tell(opt.ask(), 1.0)
    opt.enqueue([0.25, 25.0, -4.75])
    twin, before = copied(opt), bits(opt.trials)
    points = [[trial.x.tolist() for trial in each.ask(3)] for each in (twin, opt)]
    assert points[0] == points[1]
    assert points[0][0] == [0.25, 25.0, -4.75]
    assert bits(twin.trials[:5]) == before
    twin.tell(5, 3.0)
    assert opt.trials[5].status == "open"


# ---- what stays on the disk


def test_nothing_but_the_file_stays_after_close(path):
    with make(path) as opt:
        opt.tell(opt.ask(), 1.0)
        assert {each.name for each in path.parent.iterdir()} >= {path.name + end for end in ("", "-lock", "-wal")}
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert cylbo.load(path).nfev == 1
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_another_program_that_looks_into_a_run_does_not_take_its_log_away(path):
    with make(path) as opt:
        opt.tell(opt.ask(), 1.0)
        cylbo.load(path)
        look = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute('SELECT * FROM trials'); db.close()"
        subprocess.run([sys.executable, "-c", look, path], check=True)
        opt.tell(opt.ask(), 2.0)
        # What a kill at this moment would leave
        copied = path.with_name("copied.db")
        for ending in ("", "-wal"):
            shutil.copy(f"{path}{ending}", f"{copied}{ending}")
        assert [trial.value for trial in cylbo.load(copied).trials] == [1.0, 2.0]


def test_nothing_but_the_file_stays_after_a_program_that_never_closes(path):
    program = f"import test_storage as t; opt = t.make({str(path)!r}); opt.tell(opt.ask(), 1.0)"
    subprocess.run([sys.executable, "-c", program], cwd=pathlib.Path(__file__).parent, check=True)
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert cylbo.load(path).nfev == 1


def test_a_refused_optimizer_leaves_no_lock(path):
    path.write_text("my notes\n" * 100)
    with pytest.raises(cylbo.StorageError, match=r"is not a run of cylbo, and no SQLite file at all; choose another"):
        make(path)
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert path.read_text() == "my notes\n" * 100


def test_a_lock_file_that_is_removed_while_it_is_opened_locks_nobody_out(path, monkeypatch):
    """Between the opening of the lock's file and the lock, the holder removes it and lets go."""
    first, connect, removed = Lock(path), sqlite3.connect, []

    def late(*arguments, **options):
        connection = connect(*arguments, **options)
        if not removed:
            first.close()
            removed.append(True)
        return connection

    monkeypatch.setattr("cylbo.store.lock.sqlite3.connect", late)
    second = Lock(path)
    monkeypatch.undo()
    with pytest.raises(cylbo.StorageError, match="in use"):
        Lock(path)
    second.close()
    Lock(path).close()
    assert not list(path.parent.iterdir())


def test_a_lock_that_is_closed_twice_does_not_remove_that_of_another(path):
    first = Lock(path)
    first.close()
    second = Lock(path)
    first.close()
    with pytest.raises(cylbo.StorageError, match="in use"):
        Lock(path)
    second.close()


@pytest.mark.parametrize(
    ("storage", "cure"), [("sqlite:///x.db", "storage='x.db'"), ("sqlite:////tmp/x.db", "storage='/tmp/x.db'")]
)
def test_a_url_is_no_path(storage, cure):
    with pytest.raises(ValueError, match=f"storage must be the path of a file, got the URL '{storage}'; write {cure}"):
        cylbo.Optimizer(BOX, storage=storage)


# ---- files of older releases


@pytest.mark.parametrize("reader", ["load", "resume"])
def test_a_file_of_release_0_1_goes_on_with_the_points_it_would_have_had(path, reader):
    here = pathlib.Path(__file__).parent / "files"
    shutil.copy(here / "run-0.1.0.db", path)
    expected = json.loads((here / "run-0.1.0.json").read_text())
    if reader == "load":
        before = path.read_bytes()
        result = cylbo.load(path)
        assert path.read_bytes() == before
        trials = result.trials
        assert [trial.status for trial in trials[-3:]] == ["done", "open", "open"]
        assert [trial.status for trial in trials].count("failed") == 3
        assert all(trial.metadata == {} for trial in trials)
    else:
        trials = continued.continued(path)
        assert len(trials) == len(expected)
        with cylbo.Optimizer(continued.SPACE, storage=path, resume=True) as opt:
            assert bits(opt.trials) == bits(trials)
            opt.tell(opt.ask(), 1.0, constraints=[0.0], metadata={"host": "a"})
        assert cylbo.load(path).trials[-1].metadata == {"host": "a"}
    assert [trial.origin for trial in trials] == [each["origin"] for each in expected[: len(trials)]]
    # Processors differ in the last bits, which a fit and a climb make larger
    then = [each["x"] for each in expected[: len(trials)]]
    np.testing.assert_allclose([trial.x for trial in trials], then, rtol=1e-3, atol=1e-3)


def test_a_file_of_release_0_1_that_is_refused_is_left_as_it_is(path):
    shutil.copy(pathlib.Path(__file__).parent / "files" / "run-0.1.0.db", path)
    before = path.read_bytes()
    with pytest.raises(cylbo.StorageError, match="another seed"):
        cylbo.Optimizer(continued.SPACE, seed=99, storage=path, resume=True)
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_file_is_the_same_after_an_ordinary_resume(path):
    run(storage=path, budget=4)
    before = path.read_bytes()
    make(path).close()
    assert path.read_bytes() == before


def test_a_file_of_release_0_1_knows_a_method_of_the_users_own(path):
    """Its parts are named by their modules, of which one has another name since."""
    shutil.copy(pathlib.Path(__file__).parent / "files" / "run-0.1.0-custom.db", path)
    mine = dataclasses.replace(cylbo.DEFAULT, name="mine", n_sobol=64, n_spray=10, fit_steps=4)
    with cylbo.Optimizer([(-1, 1)] * 3, storage=path, resume=True, method=mine) as opt:
        assert opt.ask().id == 4
