"""Many runs, several at a time, each in a process of its own with one thread, and a file with a line for each."""

import json
import multiprocessing
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from cylbo.bench.runner import THREAD_VARIABLES

Key = TypeVar("Key")
Made = TypeVar("Made")


def make_each(
    name: str, work: Callable[[Key], Made], keys: Sequence[Key], keep: Callable[[Key, Made], object], *, jobs: int
) -> int:
    """Do the work of every key and keep what comes out as soon as it does; how many failed.

    What goes wrong in `keep`, or Ctrl-C, ends it when the work that has begun is done.
    """
    try:
        return _make_each(name, work, keys, keep, jobs)
    except KeyboardInterrupt:
        sys.exit("stopped; what was finished is kept, and the same command makes the others.")


def _make_each(
    name: str, work: Callable[[Key], Made], keys: Sequence[Key], keep: Callable[[Key, Made], object], jobs: int
) -> int:
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))  # for the processes to come
    console, failed = Console(stderr=True), 0
    columns = TextColumn(name), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()
    with (
        ProcessPoolExecutor(
            jobs,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=signal.signal,
            initargs=(signal.SIGINT, signal.SIG_IGN),  # Ctrl-C is for us
            max_tasks_per_child=1,
        ) as pool,
        Progress(*columns, console=console) as progress,
    ):
        bar = progress.add_task("", total=len(keys))
        waiting = list(reversed(keys))
        running: dict[Future[Made], Key] = {}
        while waiting or running:
            while waiting and len(running) < jobs:
                key = waiting.pop()
                running[pool.submit(work, key)] = key
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                key = running.pop(future)
                if (error := future.exception()) is None:
                    keep(key, future.result())
                else:
                    failed += 1
                    told = "".join(traceback.format_exception(error))
                    console.print(f"{key} failed: {told}", markup=False)
                progress.advance(bar)
    return failed


def read_lines(path: Path) -> list[Any]:
    """What every line of the file holds; nothing if there is no file. Damaged lines are told of and left out."""
    kept = []
    for i, line in enumerate(path.read_bytes().splitlines() if path.exists() else [], 1):
        try:
            kept.append(json.loads(line))
        except ValueError:
            print(f"line {i} of {path} is damaged and left out; its run can be made again.", file=sys.stderr)
    return kept


def append_line(value: object, path: Path) -> None:
    """Keep one more; on a line of its own, even if the last one was cut short by a kill."""
    with path.open("a+b") as file:
        file.seek(max(0, file.tell() - 1))
        cut_short = file.read(1) not in {b"", b"\n"}
        file.write(b"\n" * cut_short + json.dumps(value).encode() + b"\n")
