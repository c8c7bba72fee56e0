"""A line per evaluation in the log, and nothing on the screen unless somebody asks for it."""

import logging
import re
import subprocess
import sys
import threading

import pytest

import cylbo
from test_storage import BOX, CHEAP, bowl, run


@pytest.fixture
def lines(caplog):
    caplog.set_level(logging.INFO, logger="cylbo")
    return lambda: [record.getMessage() for record in caplog.records]


def test_every_evaluation_is_a_line_with_its_value_the_best_and_the_seconds(lines):
    values = iter([3.0, 1.5, 2.25, 0.125])
    run(lambda x: next(values), budget=4)
    seconds = r"suggested in \d+\.\d\d s, evaluated in \d+\.\d\d s"
    expected = [
        "3, best 3 (trial 0)",
        "1.5, best 1.5 (trial 1)",
        "2.25, best 1.5 (trial 1)",
        "0.125, best 0.125 (trial 3)",
    ]
    for i, (line, told) in enumerate(zip(lines(), expected, strict=True)):
        assert re.fullmatch(rf"trial {i}: value {re.escape(told)}, {seconds}", line)


def test_failures_cancellations_and_evaluations_made_elsewhere_are_lines_too(lines, tmp_path):
    opt = cylbo.Optimizer(BOX, seed=0, method=CHEAP, storage=tmp_path / "run.db", direction="maximize")
    opt.fail(opt.ask(), "mesh\nfolded " + "x" * 200)
    opt.cancel(opt.ask())
    opt.add([0.1, 12.0, -4.9], 7.0)
    opt.add_failed([0.2, 12.0, -4.9])
    failed, cancelled, added, added_failed = lines()
    assert re.fullmatch(
        r"trial 0: failed \(mesh folded x+\.\.\.\), best none, suggested in .* s, evaluated in .* s", failed
    )
    assert len(failed) < 200
    assert cancelled.startswith("trial 1: cancelled, best none, suggested in")
    assert added == "trial 2: value 7, best 7 (trial 2), evaluated elsewhere"
    assert added_failed == "trial 3: failed, best 7 (trial 2), evaluated elsewhere"


def test_nothing_is_shown_unless_the_user_asks_for_it():
    program = """
import logging, sys, cylbo
if len(sys.argv) > 1:
    logging.basicConfig(level=logging.INFO)
opt = cylbo.Optimizer([(0, 1)])
opt.fail(opt.ask(), "no licence")
"""
    quiet, loud = (
        subprocess.run([sys.executable, "-c", program, *more], capture_output=True, text=True, check=True)
        for more in ([], ["loud"])
    )
    assert (quiet.stdout, quiet.stderr, loud.stdout) == ("", "", "")
    assert loud.stderr.startswith("INFO:cylbo:trial 0: failed (no licence), best none")


def test_a_handler_may_ask_the_optimizer():
    """It is called by the thread that tells, which holds the lock."""
    opt, seen = cylbo.Optimizer(BOX, seed=0, method=CHEAP), []

    class Asking(logging.Handler):
        def emit(self, record):
            seen.append((len(opt.trials), opt.best.value, len(opt.pending)))

    logger, handler = logging.getLogger("cylbo"), Asking()
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        trial = opt.ask()
        opt.tell(trial, bowl(trial.x))
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
    assert seen == [(1, bowl(trial.x), 0)]


def test_a_handler_may_wait_for_a_thread_that_asks_the_optimizer():
    opt = cylbo.Optimizer(BOX, seed=0, method=CHEAP)
    waited = []

    class Handler(logging.Handler):
        def emit(self, record):
            thread = threading.Thread(target=repr, args=[opt], daemon=True)
            thread.start()
            thread.join(10.0)
            waited.append(thread.is_alive())

    logger, handler = logging.getLogger("cylbo"), Handler(logging.INFO)
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        opt.tell(opt.ask(), 1.0)
        opt.fail(opt.ask())
        opt.cancel(opt.ask())
        opt.add([0.1, 12.0, -4.9], 7.0)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
    assert waited == [False] * 4
