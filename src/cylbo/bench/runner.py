"""Makes the runs that a store does not hold yet, several at a time, each in a process of its own.

Safe to stop at any moment: a row is written when its run has ended, and the same call goes on with the rest.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, NamedTuple

import numpy as np

from cylbo.bench.methods import METHODS
from cylbo.bench.store import Key, Run, Status, Store

__all__ = ["TIME_LIMIT", "WORKER", "Plan", "make_runs", "plan"]

TIME_LIMIT = 1800.0  # seconds of a run, unless another limit is given

# What makes the run that its last argument names
WORKER = (sys.executable, "-m", "cylbo.bench.worker")

# Everything that may start threads inside a run. OpenMP covers torch; numba and others follow it.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


class Plan(NamedTuple):
    """What is to be done."""

    missing: list[Key]  # runs to make
    finished: int  # runs that the store holds already
    skipped: dict[str, str]  # method -> why it cannot be run, or the command that installs what it lacks


def plan(keys: Iterable[Key], store: Store, *, time_limit: float, retry_failed: bool = False) -> Plan:
    """Sort the runs into those to make, those made before and those whose method is not able to.

    A run that was stopped at a shorter time limit than this one is made again.
    """
    made = {
        run.key
        for run in store.runs()
        if run.status == "finished"
        or (run.status == "timeout" and run.time_limit >= time_limit)
        or (run.status == "failed" and not retry_failed)
    }
    obstacles = {key: METHODS[key.method].obstacle(key.problem, key.batch) for key in keys}
    skipped = {key.method: why for key, why in obstacles.items() if why}
    able = [key for key, why in obstacles.items() if not why]
    missing = [key for key in able if key not in made]
    return Plan(missing, len(able) - len(missing), skipped)


def make_runs(
    keys: Sequence[Key],
    store: Store,
    *,
    jobs: int,
    threads: int,
    time_limit: float,
    worker: Sequence[str] = WORKER,
    on_start: Callable[[Key], object] = lambda _: None,
    on_end: Callable[[Run], object] = lambda _: None,
) -> None:
    """Make the runs, `jobs` at a time with `threads` each; every one ends in the store, also when it failed."""
    crew = _Crew(threads, time_limit, worker)
    waiting = list(reversed(keys))
    with ThreadPoolExecutor(jobs) as pool:
        running: set[Future[Run]] = set()
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    key = waiting.pop()
                    on_start(key)
                    running.add(pool.submit(crew.make, key))
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    run = future.result()
                    store.add(run)
                    on_end(run)
        finally:
            crew.dismiss()


class _Crew:
    """The processes at work."""

    def __init__(self, threads: int, time_limit: float, worker: Sequence[str]) -> None:
        self._threads, self._time_limit, self._worker = threads, time_limit, worker
        self._processes: set[subprocess.Popen[str]] = set()
        self._lock = threading.Lock()
        self._dismissed = False

    def dismiss(self) -> None:
        """End every process; what they had reached is lost."""
        with self._lock:
            self._dismissed = True
            for process in self._processes:
                process.kill()

    def make(self, key: Key) -> Run:
        """One run from beginning to end."""
        with tempfile.TemporaryFile("w+") as complaints:
            process = self._start(key, complaints.fileno())
            out_of_time = threading.Event()

            def stop() -> None:
                out_of_time.set()
                process.kill()

            clock = threading.Timer(self._time_limit, stop)
            clock.start()
            try:
                with process:
                    assert process.stdout is not None
                    messages = list(_complete_messages(process.stdout))
                    process.wait()  # before its standard input is closed, which would cut off its last words
            finally:
                clock.cancel()
                with self._lock:
                    self._processes.discard(process)
            complaints.seek(0)
            last_words = complaints.read()[-4000:]
        evaluations = np.array([m for m in messages if isinstance(m, list)], dtype=float).reshape(-1, 2)
        recommended = [m["recommended"] for m in messages if isinstance(m, dict) and "recommended" in m]
        told: dict[str, Any] = {name: value for m in messages if isinstance(m, dict) for name, value in m.items()}
        error = told.get("error", "")
        status: Status
        if "error" in told:
            status = "failed" if error else "finished"
        elif out_of_time.is_set():
            status = "timeout"
        else:
            status, error = "failed", f"the process ended with code {process.returncode}\n{last_words}"
        return Run(
            key=key,
            status=status,
            values=evaluations[:, 0],
            seconds=evaluations[:, 1],
            error=error,
            time_limit=self._time_limit,
            environment=told.get("environment", {}),
            recommended=tuple((n, value) for n, value in recommended),
        )

    def _start(self, key: Key, complaints: int) -> "subprocess.Popen[str]":
        environment = os.environ | dict.fromkeys(THREAD_VARIABLES, str(self._threads))
        with self._lock:
            if self._dismissed:
                raise RuntimeError("the runs were stopped.")
            process = subprocess.Popen(  # noqa: S603 - ourselves, with a key of ours, without a shell
                [*self._worker, json.dumps(key)],
                stdin=subprocess.PIPE,  # never written: its end tells the worker that we are gone
                stdout=subprocess.PIPE,
                stderr=complaints,
                text=True,
                env=environment,
                start_new_session=True,  # Ctrl-C is for us; we end the workers ourselves
            )
            self._processes.add(process)
        return process


def _complete_messages(lines: Iterable[str]) -> Iterable[Any]:
    """The JSON of every line; a last one torn by a kill is left out."""
    for line in lines:
        if line.endswith("\n"):
            yield json.loads(line)
