"""Makes runs while a bar says how far they are."""

import datetime
import signal
import time
from collections.abc import Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from cylbo.bench.runner import WORKER, make_runs
from cylbo.bench.store import Key, Run, Store

__all__ = ["carry_out"]


def carry_out(
    keys: Sequence[Key],
    store: Store,
    console: Console,
    *,
    jobs: int,
    threads: int,
    time_limit: float,
    worker: Sequence[str] = WORKER,
) -> None:
    """Make the runs, see `make_runs`, with a line for each; Ctrl-C raises KeyboardInterrupt at any moment."""
    # A shell that starts us in the background has Ctrl-C ignored; `kill -INT` is to work there too
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with _Bar(len(keys), jobs, console) as bar:
        make_runs(
            keys,
            store,
            jobs=jobs,
            threads=threads,
            time_limit=time_limit,
            worker=worker,
            on_start=bar.begin,
            on_end=bar.end,
        )


class _Bar:
    """A line per finished run, and below them the runs left and the expected end."""

    def __init__(self, total: int, jobs: int, console: Console) -> None:
        self._bar = Progress(
            SpinnerColumn(),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[end]}"),
            TextColumn("now: {task.fields[now]}"),
            console=console,
            transient=True,
        )
        self._task = self._bar.add_task("", total=total, end="", now="")
        self._console = console
        self._total, self._jobs, self._done = total, jobs, 0
        self._began: dict[Key, float] = {}
        # Seconds of finished runs
        self._spent = 0.0

    def __enter__(self) -> "_Bar":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def begin(self, key: Key) -> None:
        """A run has begun."""
        self._began[key] = time.monotonic()
        self._show()

    def end(self, run: Run) -> None:
        """A run has ended."""
        seconds = time.monotonic() - self._began.pop(run.key)
        self._spent += seconds
        self._done += 1
        colour = {"finished": "green", "timeout": "yellow", "failed": "red"}[run.status]
        self._console.print(
            f"[{colour}]{run.status:8}[/] {_named(run.key)}: best {run.best:.6g} "
            f"after {len(run.values)} evaluations, {seconds:.0f} s",
            soft_wrap=True,
        )
        self._bar.advance(self._task)
        self._show()

    def _show(self) -> None:
        end = ""
        if self._done:
            left = (self._total - self._done) * self._spent / self._done / self._jobs
            moment = datetime.datetime.now() + datetime.timedelta(seconds=left)
            end = f"{self._total - self._done} left, ends about {moment:%H:%M}"
        self._bar.update(self._task, end=end, now="; ".join(map(_named, self._began)))


def _named(key: Key) -> str:
    at_a_time = f", {key.batch} at a time" if key.batch > 1 else ""
    return f"{key.method} on {key.problem} {key.dim}-d seed {key.seed}{at_a_time}"
