"""What a person sees of a run: where it is written, how often, and how it fits a narrow terminal."""

import contextlib
import io
import math
import re
import subprocess
import sys

import numpy as np
import pytest

import cylbo
from cylbo.record.trial import Trial
from cylbo.run.progress import ProgressBar


class Clock:
    """Stands still until it is moved."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def terminal(monkeypatch):
    """A terminal of that many columns in the place of both streams."""

    def of(columns):
        for name in ("FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr(sys, "stderr", Terminal())
        return sys.stderr

    return of


def done(value=1.0, *, seconds=0.25):
    return Trial(0, np.zeros(2), value=value, status="done", seconds=seconds)


def failure():
    return Trial(0, np.zeros(2), status="failed")


def last_drawn(written):
    """The last state of the bar, without the codes that move the cursor and choose colours."""
    lines = [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", line) for line in re.split(r"[\r\n]+", written)]
    return [line.rstrip() for line in lines if line.strip()][-1]


# ---- without a terminal


def test_lines_are_a_second_apart_at_the_least_and_the_last_evaluation_has_one(clock, capsys):
    with ProgressBar(11, shown=True, clock=clock) as bar:
        for i in range(11):
            clock.now += 0.3
            bar.update(done(10.0 - i), done(10.0 - i))
    shown = [line.split()[1] for line in capsys.readouterr().err.splitlines()]
    # Evaluations end after 0.3, 0.6, ..., 3.3 seconds
    assert shown == ["1/11", "5/11", "9/11", "11/11"]


def test_no_line_is_written_twice(clock, capsys):
    with ProgressBar(2, shown=True, clock=clock) as bar:
        for _ in range(2):
            clock.now += 5.0
            bar.update(done(), done())
    assert [line.split()[1] for line in capsys.readouterr().err.splitlines()] == ["1/2", "2/2"]


def test_a_run_that_ends_early_tells_its_last_evaluation(clock, capsys):
    with contextlib.suppress(KeyboardInterrupt), ProgressBar(9, shown=True, clock=clock) as bar:
        for _ in range(3):
            bar.update(done(), done())
        raise KeyboardInterrupt
    assert [line.split()[1] for line in capsys.readouterr().err.splitlines()] == ["1/9", "3/9"]


def test_a_line_holds_the_best_value_the_failures_the_cost_and_the_time_left(clock, capsys):
    with ProgressBar(40, done=36, failed=1, shown=True, clock=clock) as bar:
        clock.now += 64.0
        bar.update(failure(), done(0.02125))
    captured = capsys.readouterr()
    # 64 seconds for one evaluation, three of which are left
    assert captured.err == "cylbo  37/40  best 0.02125  2 failed  0.00 s per suggestion  3:12 left\n"
    assert captured.out == ""


def test_without_a_failure_nothing_is_said_of_failures_and_without_a_best_value_there_is_a_dash(clock, capsys):
    with ProgressBar(4, shown=True, clock=clock) as bar:
        clock.now += 3600.0
        bar.update(done(), None)
    assert capsys.readouterr().err == "cylbo  1/4  best -  0.25 s per suggestion  3:00:00 left\n"


def test_the_time_left_is_told_by_the_last_ten_evaluations(clock, capsys):
    with ProgressBar(40, shown=True, clock=clock) as bar:
        for duration in [1000.0] * 10 + [2.0] * 10:
            clock.now += duration
            bar.update(done(), done())
    assert capsys.readouterr().err.splitlines()[-1].endswith("  0:40 left")


def test_nothing_is_written_unless_it_is_asked_for(clock, capsys, terminal):
    with ProgressBar(1, shown=False, clock=clock) as bar:
        bar.update(done(), done())
    stream = terminal(80)
    with ProgressBar(1, shown=False, clock=clock) as bar:
        bar.update(done(), done())
    captured = capsys.readouterr()
    assert captured.out + captured.err + stream.getvalue() == ""


def test_a_stream_that_cannot_be_written_does_not_end_the_run(clock, monkeypatch):
    class Full(io.StringIO):
        def write(self, text):
            raise OSError("no space left on device")

    closed = io.StringIO()
    closed.close()
    for stream in (Full(), closed, None):
        monkeypatch.setattr(sys, "stderr", stream)
        with ProgressBar(1, shown=True, clock=clock) as bar:
            bar.update(done(), done())


def test_a_dumb_terminal_gets_lines(clock, terminal, monkeypatch):
    stream = terminal(80)
    monkeypatch.setenv("TERM", "dumb")
    with ProgressBar(1, shown=True, clock=clock) as bar:
        bar.update(done(), done())
    assert stream.getvalue() == "cylbo  1/1  best 1  0.25 s per suggestion  0:00 left\n"


def test_a_pipe_sees_plain_lines_on_the_error_stream_and_rich_is_not_imported():
    program = """
import sys, cylbo
cylbo.minimize(lambda x: float(x @ x), [(-1, 1)] * 2, budget=3, seed=0, progress=True)
print('rich' in sys.modules)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout == "False\n"
    assert ended.stderr.splitlines()[-1].startswith("cylbo  3/3  best 0  ")
    assert "\x1b" not in ended.stderr


# ---- in a terminal


def test_sixty_columns_hold_every_number(clock, terminal):
    stream = terminal(60)
    with ProgressBar(200, done=136, failed=11, shown=True, clock=clock) as bar:
        clock.now += 60.0
        bar.update(failure(), done(1234.5678))
    assert last_drawn(stream.getvalue()) == "137/200  best 1234.57  12 failed  0.00 s/ask  1:03:00 left"


@pytest.mark.parametrize("columns", [20, 30, 40, 50, 60, 70, 80, 90, 100, 120, 200])
@pytest.mark.parametrize(("best", "budget"), [(0.5, 200), (-1.23456e-05, 10_000)])
def test_the_bar_is_one_line_at_every_width_and_always_counts(columns, best, budget, clock, terminal):
    stream = terminal(columns)
    with ProgressBar(budget, done=36, failed=5, shown=True, clock=clock) as bar:
        clock.now += 10.0
        bar.update(done(), done(best))
    drawn = last_drawn(stream.getvalue())
    assert len(drawn) <= columns
    # Rich goes up one line for each further line that it redraws, which one line never needs
    assert "\x1b[1A" not in stream.getvalue()
    assert f"37/{budget}" in drawn
    assert "…" not in drawn
    if columns >= 30:
        assert f"best {best:.6g}" in drawn


def test_a_wide_terminal_shows_the_bar_and_the_time_elapsed(clock, terminal):
    stream = terminal(120)
    with ProgressBar(4, shown=True, clock=clock) as bar:
        clock.now += 70.0
        bar.update(done(), done())
    drawn = last_drawn(stream.getvalue())
    assert drawn == f"{'━' * 6}{'─' * 18}  1/4  best 1  0.25 s per suggestion  1:10 elapsed  3:30 left"


def test_before_the_first_evaluation_the_bar_shows_what_is_known(clock, terminal):
    stream = terminal(80)
    with ProgressBar(4, done=2, shown=True, clock=clock):
        pass
    assert last_drawn(stream.getvalue()).endswith("  2/4  0:00 elapsed")


def test_a_run_with_nothing_left_to_do_says_so_in_one_line(clock, capsys):
    with ProgressBar(4, done=4, failed=1, shown=True, clock=clock):
        pass
    assert capsys.readouterr().err == "cylbo  4/4  1 failed\n"


def test_the_streams_are_given_back_and_a_redirected_output_keeps_what_the_objective_prints(terminal, capsys):
    stream, out = terminal(80), sys.stdout

    def fun(x):
        print("from the objective")
        return math.nan if x[0] else 1.0

    cylbo.minimize(fun, [(-1, 1)], budget=2, seed=0, progress=True)
    assert (sys.stderr, sys.stdout) == (stream, out)
    assert capsys.readouterr().out == "from the objective\n" * 2
    assert "from the objective" not in stream.getvalue()
    assert "2/2  best 1  1 failed" in last_drawn(stream.getvalue())
