"""A run in one SQLite file that a kill at any moment leaves whole.

Every ask and every tell is one transaction, on the disk before the caller sees its result (write-ahead log,
synchronous=FULL). The file holds what a run is a function of (space, seed, method, earlier evaluations), its trials and
the state that the next suggestion begins from, so that a run that goes on gives the points it would have given anyway.

One process at a time may write; another gets an error. Reading (`cylbo.load`) is always possible. The lock is a second
file beside the first, which the operating system releases when its holder dies, however it does.
"""

import json
import math
import os
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from cylbo.errors import StorageError
from cylbo.fit import Form
from cylbo.learn import Fits, State
from cylbo.slice_sampler import Chain
from cylbo.trial import Trial

__all__ = ["Header", "Memory", "Store", "Stored", "read"]

APPLICATION_ID = 0x63796C72  # "cylr", in the file's own header; the lab's files (`bench/store.py`) have another
FORMAT = 2
SMALLEST_FILE = 100  # bytes, the header of an SQLite file

Header = dict[str, Any]  # what a run is a function of, as JSON

# A value has no type of SQLite's: in a column of REAL it would store -0.0 as the integer 0
SCHEMA = """
CREATE TABLE header (name TEXT PRIMARY KEY, json TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE trials (
    id INTEGER PRIMARY KEY, x BLOB NOT NULL, value, status TEXT NOT NULL, origin TEXT NOT NULL,
    seconds REAL NOT NULL, reason TEXT NOT NULL, std, constraints TEXT NOT NULL, info TEXT NOT NULL
);
CREATE TABLE memory (id INTEGER PRIMARY KEY CHECK (id = 0), json TEXT NOT NULL);
"""

# Or replace: whoever catches an interrupt between the file and the memory asks for the same trial once more
INSERT = "INSERT OR REPLACE INTO trials VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


@dataclass(frozen=True, eq=False)
class Memory:
    """What the next suggestion begins from."""

    state: State = None  # of the objective
    limits: Mapping[str, Fits] = field(default_factory=dict)  # of what must be kept, see `limits.py`


class Stored(NamedTuple):
    """All that a file holds."""

    header: Header
    trials: list[Trial]
    memory: Memory


class Store:
    """The file of one run, open for writing."""

    def __init__(self, path: Path, lock: sqlite3.Connection, db: sqlite3.Connection) -> None:
        """Use `begin`."""
        self.path, self._lock, self._db = path, lock, db

    @classmethod
    def begin(
        cls, path: Path, header: Header, trials: list[Trial], *, resume: bool, given: Collection[str]
    ) -> tuple[Self, Stored | None]:
        """A new file for a run that begins with these trials; or, to go on, the run that is in the file already.

        Of the header, what was `given` by the caller must be what the file says. Raises StorageError, and leaves the
        file as it is, if it holds another run, is in use, damaged or no run at all, or if it is there and `resume` is
        False.
        """
        lock = _locked(path)
        try:
            if _is_blank(path):
                return cls(path, lock, _created(path, header, trials)), None
            if not resume:
                raise StorageError(f"{path} exists; pass resume=True to go on with the run in it, or another name.")
            stored = read(path)
            for name in given:
                there, here = json.dumps(stored.header[name]), json.dumps(header[name])
                if there != here:  # as text: 1 is not True there
                    there, here = _where_they_differ(there, here)
                    raise StorageError(
                        f"{path} holds a run with another {name}: {there}, not {here}; go on with what the run began "
                        "with, or choose another file."
                    )
            with _explained(path):
                return cls(path, lock, _connected(path)), stored
        except BaseException:
            lock.close()
            raise

    def asked(self, trial: Trial, memory: Memory) -> None:
        """Keep a new trial, and what the next suggestion begins from."""
        with self._transaction() as db:
            db.execute(INSERT, _row(trial))
            if memory.state is not None or memory.limits:
                db.execute("INSERT OR REPLACE INTO memory VALUES (0, ?)", [json.dumps(_memory_to_json(memory))])

    def closed(self, trial: Trial) -> None:
        """Keep the outcome of a trial."""
        with self._transaction() as db:
            db.execute(INSERT, _row(trial))

    def close(self) -> None:
        """Let others go on with the file."""
        self._db.close()
        self._lock.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with _explained(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise


def read(path: Path) -> Stored:
    """All that a file holds, which is left as it is. Raises StorageError if it is not the whole file of a run."""
    if not path.exists():
        raise StorageError(f"there is no file {path}; check the name, or begin the run that is to be stored there.")
    with _explained(path), closing(_connected(path, read_only=True)) as db:
        application, version = (db.execute(f"PRAGMA {key}").fetchone()[0] for key in ("application_id", "user_version"))
        if application != APPLICATION_ID:
            raise StorageError(f"{path} is not a run of cylbo; choose another file.")
        if version != FORMAT:
            cure = "a newer" if version > FORMAT else "the older"
            raise StorageError(f"{path} has format {version}, this cylbo reads {FORMAT}; install {cure} cylbo.")
        (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise StorageError(f"{path} is damaged ({verdict}); restore it from a copy.")
        header = db.execute("SELECT name, json FROM header").fetchall()
        rows = db.execute("SELECT * FROM trials ORDER BY id").fetchall()
        memory = db.execute("SELECT json FROM memory").fetchone()
    try:
        run = {name: json.loads(text) for name, text in header}
        dim = _dim(run)
        return Stored(
            run,
            [_trial(i, row, dim) for i, row in enumerate(rows)],
            Memory() if memory is None else _memory_from_json(json.loads(memory[0])),
        )
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise StorageError(f"{path} is damaged ({error}); restore it from a copy.") from error


def _created(path: Path, header: Header, trials: list[Trial]) -> sqlite3.Connection:
    """One transaction: a kill leaves the file blank, or whole."""
    with _explained(path):
        db = _connected(path)
        try:
            db.execute("PRAGMA journal_mode=WAL")
            db.executescript(
                f"BEGIN IMMEDIATE; {SCHEMA} PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={FORMAT};"
            )
            db.executemany("INSERT INTO header VALUES (?, ?)", [(name, json.dumps(v)) for name, v in header.items()])
            db.executemany(INSERT, map(_row, trials))
            db.execute("COMMIT")
        except BaseException:
            db.close()
            raise
        return db


def _row(trial: Trial) -> tuple[object, ...]:
    value = trial.value if trial.status == "done" else None
    x = trial.x.astype("<f8").tobytes()  # bits, not decimals; the same on every machine
    reason = trial.reason.encode(errors="backslashreplace").decode()  # SQLite has no half characters
    std = None if math.isnan(trial.std) else trial.std
    constraints, info = json.dumps(trial.constraints), json.dumps(dict(trial.info))
    return trial.id, x, value, trial.status, trial.origin, trial.seconds, reason, std, constraints, info


def _dim(header: Header) -> int:
    """The number of parameters, of a header that has all that the run is a function of."""
    dim = len(header["space"]["center"])
    points, values, seed = header["x0"], header["y0"], header["seed"]
    if (
        "method" not in header
        or header["direction"] not in ("minimize", "maximize")
        or any(len(x) != dim for x in points)
        or (values is not None and len(values) != len(points))
        or not (isinstance(seed, int) and seed >= 0)
    ):
        raise ValueError("its header is not what it should be")
    return dim


def _trial(i: int, row: tuple[Any, ...], dim: int) -> Trial:
    number, x, value, status, origin, seconds, reason, std, constraints, info = row
    told, about = json.loads(constraints), json.loads(info)
    point = np.frombuffer(x, "<f8").astype(np.float64)
    known = isinstance(value, float) and math.isfinite(value)
    if not (
        number == i
        and point.shape == (dim,)
        and np.isfinite(point).all()
        and (known if status == "done" else status in ("open", "failed") and value is None)
        and (type(origin), type(seconds), type(reason)) == (str, float, str)
        and (std is None or (isinstance(std, float) and math.isfinite(std) and std >= 0.0))
        and isinstance(told, list)
        and all(isinstance(c, float) and math.isfinite(c) for c in told)
        and isinstance(about, dict)
    ):
        raise ValueError(f"trial {i} is not what it should be")
    point.flags.writeable = False
    return Trial(
        i,
        point,
        math.nan if value is None else value,
        status,
        origin,
        seconds,
        reason,
        std=math.nan if std is None else std,
        constraints=tuple(told),
        info=about,
    )


def _memory_to_json(memory: Memory) -> dict[str, Any]:
    state = None if memory.state is None else _state_to_json(memory.state)
    limits = {name: _state_to_json(fits) for name, fits in memory.limits.items()}
    return {"state": state, "limits": limits}


def _memory_from_json(stored: dict[str, Any]) -> Memory:
    limits = {name: _state_from_json(fits) for name, fits in stored["limits"].items()}
    if not all(isinstance(fits, Fits) for fits in limits.values()):
        raise ValueError("its memory of limits is not what it should be")
    state = None if stored["state"] is None else _state_from_json(stored["state"])
    return Memory(state, limits)  # type: ignore[arg-type]


def _state_to_json(state: Chain | Fits) -> dict[str, Any]:
    if isinstance(state, Chain):
        return {"kind": "chain", "theta": state.theta.tolist(), "widths": state.widths.tolist()}
    thetas = [[[form.stretched, form.effects], theta.tolist()] for form, theta in state.thetas.items()]
    chosen = [state.form.stretched, state.form.effects]
    return {
        "kind": "fits",
        "thetas": thetas,
        "form": chosen,
        "chosen_at": state.chosen_at,
        "fitted_at": state.fitted_at,
        "told_noise": state.told_noise,
    }


def _state_from_json(stored: dict[str, Any]) -> Chain | Fits:
    if stored["kind"] == "chain":
        return Chain(np.array(stored["theta"]), np.array(stored["widths"]))
    if stored["kind"] != "fits":
        raise ValueError(f"its state is of the unknown kind {stored['kind']!r}")
    thetas = {Form(*form): np.array(theta) for form, theta in stored["thetas"]}
    form = Form(*stored["form"])
    if form not in thetas:
        raise ValueError("its state lacks the form of the model that was chosen")
    return Fits(thetas, form, stored["chosen_at"], stored["fitted_at"], stored["told_noise"])


def _connected(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    # Autocommit: transactions are written out where they begin and end. Any thread may tell
    whole = path.resolve()
    uri = whole.as_uri() + ("?mode=ro" if read_only else "")
    # Even to read, SQLite makes files beside; where it cannot and there are none, nobody is writing either
    if read_only and not os.access(whole.parent, os.W_OK) and not _beside(path, "-wal").exists():
        uri += "&immutable=1"
    db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    try:
        db.execute("PRAGMA synchronous=FULL")
    except BaseException:
        db.close()
        raise
    return db


def _is_blank(path: Path) -> bool:
    """Whether there is no file, or one without anything in it, as a kill while it was made leaves it."""
    if not path.exists() or not path.stat().st_size:
        return True
    if path.stat().st_size < SMALLEST_FILE:  # which SQLite may take for a blank one, and overwrite
        return False
    # Beside a journal lies a file whose very first write was cut off; that only a writer can undo
    cut_off = _beside(path, "-journal").exists()
    with _explained(path), closing(_connected(path, read_only=not cut_off)) as db:
        return not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]


def _beside(path: Path, ending: str) -> Path:
    """A file that belongs to the run's own: the same one, whatever links lead there."""
    whole = path.resolve()
    return whole.with_name(whole.name + ending)


def _where_they_differ(*texts: str) -> list[str]:
    """Each text, cut to where they begin to differ if it is long."""
    begin = max(0, len(os.path.commonprefix(texts)) - 30)  # noqa: RUF071 - by character is what is wanted
    return [
        text if len(text) <= 60 else "..." * (begin > 0) + text[begin : begin + 60] + "..." * (len(text) > begin + 60)
        for text in texts
    ]


def _locked(path: Path) -> sqlite3.Connection:
    """A connection that holds the run's lock as long as it is open."""
    if path.is_dir():
        raise StorageError(f"{path} is a folder; choose the name of a file.")
    if not path.parent.is_dir():
        raise StorageError(f"there is no folder {path.parent} to keep {path.name} in; make it first.")
    beside = _beside(path, "-lock")
    lock = None
    try:
        lock = sqlite3.connect(beside, timeout=0.0, isolation_level=None, check_same_thread=False)
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.Error as error:
        if lock is not None:
            lock.close()
        if "locked" in str(error):
            raise StorageError(
                f"{path} is in use by another optimizer, here or in another process; close() that one or wait for it."
            ) from error
        raise StorageError(f"{beside}, which marks {path.name} as in use, cannot be written: {error}.") from error
    return lock


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter where damage is quoted in SQLite's own message
        raise StorageError(f"{path} cannot be used: {error}; what was told before is in it.") from error
