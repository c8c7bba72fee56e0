"""Many runs, several at a time, each in a process of its own with one thread."""

import concurrent.futures
import multiprocessing
import os
from collections.abc import Callable, Sequence
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from cylbo.bench.runner import THREAD_VARIABLES

Key = TypeVar("Key")
Made = TypeVar("Made")


def make_each(
    name: str, work: Callable[[Key], Made], keys: Sequence[Key], keep: Callable[[Key, Made], object], *, jobs: int
) -> int:
    """Do the work of every key and keep what comes out as soon as it does; how many failed."""
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))  # for the processes to come
    console, failed = Console(stderr=True), 0
    columns = TextColumn(name), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn()
    with (
        concurrent.futures.ProcessPoolExecutor(
            jobs, mp_context=multiprocessing.get_context("spawn"), max_tasks_per_child=1
        ) as pool,
        Progress(*columns, console=console) as progress,
    ):
        bar = progress.add_task("", total=len(keys))
        futures = {pool.submit(work, key): key for key in keys}
        for future in concurrent.futures.as_completed(futures):
            if (error := future.exception()) is None:
                keep(futures[future], future.result())
            else:
                failed += 1
                console.print(f"{futures[future]} failed: {error!r}", markup=False)
            progress.advance(bar)
    return failed
