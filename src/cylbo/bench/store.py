"""The lab's notebook: one SQLite file, one row per finished run, each written in one transaction.

Numbers are JSON text, so that any SQL tool can read them. Nothing is ever half written: a run that was killed has no
row, and the same command makes it again.
"""

import json
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from cylbo.errors import CylboError
from cylbo.types import Array

__all__ = ["Key", "Run", "Status", "Store", "StoreError"]

Status = Literal["finished", "timeout", "failed"]

APPLICATION_ID = 0x6379_6C62  # "cylb": tells our files from other SQLite files
SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    problem TEXT NOT NULL, dim INTEGER NOT NULL, budget INTEGER NOT NULL, method TEXT NOT NULL, seed INTEGER NOT NULL,
    batch INTEGER NOT NULL, status TEXT NOT NULL, "values" TEXT NOT NULL, seconds TEXT NOT NULL, error TEXT NOT NULL,
    time_limit REAL NOT NULL, environment TEXT NOT NULL, recommended TEXT NOT NULL,
    PRIMARY KEY (problem, dim, budget, method, seed, batch)
) WITHOUT ROWID
"""
# The columns of files made before there were batches and noise
EARLIER = 'problem, dim, budget, method, seed, status, "values", seconds, error, time_limit, environment'
UPGRADE = f"""
BEGIN;
ALTER TABLE runs RENAME TO earlier;
{SCHEMA};
INSERT INTO runs ({EARLIER}, batch, recommended) SELECT {EARLIER}, 1, '[]' FROM earlier;
DROP TABLE earlier;
COMMIT;
"""  # noqa: S608 - constants of ours
SELECT = """
SELECT problem, dim, budget, method, seed, batch,
       status, "values", seconds, error, time_limit, environment, recommended
FROM runs ORDER BY problem, dim, budget, method, seed, batch
"""
INSERT = "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class StoreError(CylboError, ValueError):
    """The file is not one of ours."""


class Key(NamedTuple):
    """What names a run: it is made once."""

    problem: str
    dim: int
    budget: int
    method: str
    seed: int
    batch: int = 1  # points that are asked for before the first of them is told


@dataclass(frozen=True)
class Run:
    """One optimisation from the centre, with everything worth keeping."""

    key: Key
    status: Status  # "timeout": stopped at the time limit, what was reached by then is kept
    values: Array = field(repr=False)  # (n,) every evaluation in order, n <= budget; NaN where it crashed
    seconds: Array = field(repr=False)  # (n,) spent suggesting each
    error: str = ""  # the traceback of a failed run
    time_limit: float = 0.0  # in seconds, of the whole run
    environment: dict[str, Any] = field(default_factory=dict)  # versions, cores, threads, machine
    # Of a noisy problem: after so many evaluations, the value without noise at the point recommended then
    recommended: tuple[tuple[int, float], ...] = ()

    @property
    def best(self) -> float:
        """The lowest value, without those that are no numbers; NaN if there is none."""
        return float(np.fmin.reduce(self.values, initial=np.nan))


class Store:
    """The runs of one file; made when it does not exist."""

    def __init__(self, path: Path, *, create: bool = True) -> None:
        if not create and not path.is_file():
            raise StoreError(f"there is no file {str(path)!r}; make one with `cylbo bench run SUITE --out {path}`.")
        if not path.parent.is_dir():
            raise StoreError(f"the folder {str(path.parent)!r} does not exist.")
        self.path = path
        try:
            self._connection = sqlite3.connect(path, timeout=60.0)
            with self._connection:
                self._prepare()
        except sqlite3.DatabaseError as error:
            raise StoreError(f"{str(path)!r} is not a file of `cylbo bench run`: {error}.") from error

    def _prepare(self) -> None:
        tables = {name for (name,) in self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        (mark,) = self._connection.execute("PRAGMA application_id").fetchone()
        if tables and mark != APPLICATION_ID:
            raise StoreError(f"{str(self.path)!r} is another program's SQLite file; choose another name.")
        # One file, no -wal beside it: the file is copied and committed as it is. FULL: a row told is a row kept.
        self._connection.execute("PRAGMA synchronous = FULL")
        if not tables:
            self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            self._connection.execute(SCHEMA)
        elif "batch" not in {row[1] for row in self._connection.execute("PRAGMA table_info(runs)")}:
            self._connection.executescript(UPGRADE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def add(self, *runs: Run) -> None:
        """Keep the runs, in one transaction; a run of the same key is replaced."""
        rows = [
            (
                *run.key,
                run.status,
                json.dumps(run.values.tolist()),
                json.dumps([round(s, 6) for s in run.seconds.tolist()]),
                run.error,
                run.time_limit,
                json.dumps(run.environment, sort_keys=True),
                json.dumps(run.recommended),
            )
            for run in runs
        ]
        with self._connection:
            self._connection.executemany(INSERT, rows)

    def runs(self) -> list[Run]:
        """All runs, in the order of their keys."""
        return [
            Run(
                key=Key(*row[:6]),
                status=row[6],
                values=np.array(json.loads(row[7]), dtype=float),
                seconds=np.array(json.loads(row[8]), dtype=float),
                error=row[9],
                time_limit=row[10],
                environment=json.loads(row[11]),
                recommended=tuple((n, value) for n, value in json.loads(row[12])),
            )
            for row in self._connection.execute(SELECT)
        ]
