"""A run in one SQLite file that a kill at any moment leaves whole.

Every ask and every tell is one transaction, on the disk before the caller sees its result (write-ahead log,
synchronous=FULL). The file holds what a run is a function of (space, seed, method, earlier evaluations), its trials
and the state that the next suggestion begins from, so that a run that goes on gives the points it would have given
anyway. If it goes on in a larger space, all of it is carried over there first, in one transaction too.

One process at a time may write (`store/lock.py`); another gets an error, and so does a child process that was forked.
Reading (`cylbo.load`) is always possible.

`close` leaves one file. While a run is open, SQLite keeps its newest part in `run.db-wal`, with an index
`run.db-shm`; after a kill these two belong to the run, and go with it when it is copied. The next optimizer that
opens the run and closes it clears them away. Where somebody is reading at that moment, the last reader leaves them,
empty.

Files of the format 2 (release 0.1) are read as they are, and gain what the format 3 adds (metadata, points that wait
to be asked, cancelled trials) when they are opened for writing.
"""

import json
import os
import sqlite3
import weakref
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Self

from cylbo.errors import StorageError
from cylbo.record.trial import Trial
from cylbo.search.memory import Memory
from cylbo.store.codec import FORMAT, bits_of, memory_from_json, memory_to_json, point_of, row_of, space_of, trial_of
from cylbo.store.lock import Lock, beside
from cylbo.store.resume import Stored, Waiting, recognised

__all__ = ["Store", "read"]

APPLICATION_ID = 0x63796C72  # "cylr", in the file's own header; the lab's files (`bench/store.py`) have another
MAGIC = b"SQLite format 3\0"  # what an SQLite file begins with
SMALLEST_FILE = 100  # bytes, the header of an SQLite file


WAITING = "CREATE TABLE waiting (id INTEGER PRIMARY KEY, x BLOB NOT NULL);"

# A value has no type of SQLite's: in a column of REAL it would store -0.0 as the integer 0
SCHEMA = f"""
CREATE TABLE header (name TEXT PRIMARY KEY, json TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE trials (
    id INTEGER PRIMARY KEY, x BLOB NOT NULL, value, status TEXT NOT NULL, origin TEXT NOT NULL,
    seconds REAL NOT NULL, reason TEXT NOT NULL, std, constraints TEXT NOT NULL, info TEXT NOT NULL,
    metadata TEXT NOT NULL DEFAULT '{{}}'
);
CREATE TABLE memory (id INTEGER PRIMARY KEY CHECK (id = 0), json TEXT NOT NULL);
{WAITING}
"""

# What a file of the format 2 lacks
RENEWAL = (
    "ALTER TABLE trials ADD COLUMN metadata TEXT NOT NULL DEFAULT '{}'",
    WAITING,
    f"PRAGMA user_version={FORMAT}",
)

NOTHING_WRITTEN = "it was left as it is; choose another file, or restore it from a copy"

# Or replace: whoever catches an interrupt between the file and the memory asks for the same trial once more
INSERT = "INSERT OR REPLACE INTO trials VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class Store:
    """The file of one run, open for writing."""

    def __init__(self, path: Path, lock: Lock, db: sqlite3.Connection) -> None:
        """Use `begin`."""
        self.path, self._db, self._process = path, db, os.getpid()
        # Called by `close`, by the garbage collector or at the end of the process, whatever comes first
        self._let_go = weakref.finalize(self, _let_go, self._process, db, lock)
        _stores.add(self)

    @classmethod
    def begin(cls, path: Path, run: Stored, *, resume: bool, given: Collection[str]) -> tuple[Self, Stored]:
        """A new file for a run that begins like this; or, to go on, the run that is in the file already.

        That one is carried over to the space of the caller, which must contain its own; and what else of the header
        was `given` must be what the file says. Raises StorageError, and leaves the file as it is, if it holds another
        run, is in use, damaged or no run at all, or if it is there and `resume` is False.
        """
        with ExitStack() as undo:
            with _explained(path, "choose another name"):
                lock = undo.enter_context(closing(Lock(path)))
            if _is_blank(path):
                store = cls(path, lock, _created(path, run))
            elif not resume:
                raise StorageError(f"{path} exists; pass resume=True to go on with the run in it, or another name.")
            else:
                stored = read(path)
                run = recognised(path, stored, run, given)
                with _explained(path, NOTHING_WRITTEN):
                    db = undo.enter_context(closing(_connected(path)))
                store = cls(path, lock, db)
                if stored.format < FORMAT:
                    store._renewed()
                if run is not stored:
                    store._carried_over(run)
            undo.pop_all()
        return store, run

    def asked(self, trial: Trial, memory: Memory, waited: Sequence[Waiting] = ()) -> None:
        """Keep a new trial, and what the next suggestion begins from; those that `waited` do so no more."""
        with self._transaction() as db:
            db.execute(INSERT, row_of(trial))
            db.executemany("DELETE FROM waiting WHERE id = ?", [(each.id,) for each in waited])
            if memory.state is not None or memory.limits:
                db.execute("INSERT OR REPLACE INTO memory VALUES (0, ?)", [json.dumps(memory_to_json(memory))])

    def kept(self, trial: Trial) -> None:
        """Keep a trial as it is now: with its outcome, say, or as one that was evaluated elsewhere."""
        with self._transaction() as db:
            db.execute(INSERT, row_of(trial))

    def dropped(self, waited: Waiting) -> None:
        """Forget a point that was to be asked and need not be any more."""
        with self._transaction() as db:
            db.execute("DELETE FROM waiting WHERE id = ?", [waited.id])

    def enqueued(self, wanted: Waiting) -> None:
        """Keep a point that the user wants to be asked."""
        with self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO waiting VALUES (?, ?)", [wanted.id, bits_of(wanted.x)])

    def _renewed(self) -> None:
        """Give a file of the format 2 what it lacks, whole or not at all."""
        with self._transaction() as db:
            for statement in RENEWAL:
                db.execute(statement)

    def _carried_over(self, run: Stored) -> None:
        """Keep the run as it is in another space, whole or not at all."""
        with self._transaction() as db:
            texts = [(json.dumps(value), name) for name, value in run.header.items()]
            db.executemany("UPDATE header SET json = ? WHERE name = ?", texts)
            db.executemany("UPDATE trials SET x = ? WHERE id = ?", [(bits_of(t.x), t.id) for t in run.trials])
            db.executemany("UPDATE waiting SET x = ? WHERE id = ?", [(bits_of(x), i) for i, x in run.waiting])
            db.execute("DELETE FROM memory")

    def close(self) -> None:
        """Let others go on with the file; in a child process, which has only a copy of this object, do nothing."""
        if self._process == os.getpid():
            self._let_go()

    def check_process(self) -> None:
        """Raise StorageError in a child process that was forked."""
        if self._process != os.getpid():
            raise StorageError(
                f"{self.path} is held by the process {self._process}, and this one ({os.getpid()}) is a fork of it; "
                "ask and tell there, and let this process evaluate: hand it the point, and hand the value back."
            )

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self.check_process()
        if not self._let_go.alive:
            raise StorageError(
                f"{self.path} was let go of by close(); what was told is in it: go on with storage= and resume=True."
            )
        with _explained(self.path, "what was told before is in it"):
            try:
                # In here, so that an interrupt right after it does not leave the transaction open
                self._db.execute("BEGIN IMMEDIATE")
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise


# SQLite's connections must not cross a fork, not even to be closed there: a child keeps those that it inherits
_stores: "weakref.WeakSet[Store]" = weakref.WeakSet()
_inherited: list[object] = []

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _inherited.extend(_stores))


def _let_go(process: int, db: sqlite3.Connection, lock: Lock) -> None:
    """Close the file of a run and what lies beside it, in the process that opened it."""
    if process != os.getpid():
        _inherited.extend([db, lock])
        return
    db.close()
    lock.close()


def read(path: Path) -> Stored:
    """All that a file holds, which is left as it is. Raises StorageError if it is not the whole file of a run."""
    with _explained(path, "check the name"):
        is_there, is_file = path.exists(), path.is_file()
    if not is_there:
        raise StorageError(f"there is no file {path}; check the name, or begin the run that is to be stored there.")
    if not is_file:  # a pipe would never answer
        raise StorageError(f"{path} cannot be used: it is no plain file; check the name.")
    _check_is_database(path)
    with _explained(path, NOTHING_WRITTEN), closing(_reading(path)) as db:
        application, version = (db.execute(f"PRAGMA {key}").fetchone()[0] for key in ("application_id", "user_version"))
        if application != APPLICATION_ID:
            raise StorageError(f"{path} is not a run of cylbo; choose another file.")
        if version not in (2, FORMAT):
            cure = "a newer" if version > FORMAT else "the older"
            raise StorageError(f"{path} has format {version}, this cylbo reads 2 and {FORMAT}; install {cure} cylbo.")
        (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise StorageError(f"{path} is damaged ({verdict}); restore it from a copy.")
        db.execute("BEGIN")  # what is read belongs together, even if the run is carried over to another space meanwhile
        header = db.execute("SELECT name, json FROM header").fetchall()
        rows = db.execute("SELECT * FROM trials ORDER BY id").fetchall()
        memory = db.execute("SELECT json FROM memory").fetchone()
        waiting = db.execute("SELECT id, x FROM waiting ORDER BY id").fetchall() if version > 2 else []
    if version == 2:
        rows = [(*row, "{}") for row in rows]
    try:
        run = {name: json.loads(text) for name, text in header}
        space = space_of(run)
        return Stored(
            run,
            space,
            [trial_of(i, row, space) for i, row in enumerate(rows)],
            Memory() if memory is None else memory_from_json(json.loads(memory[0]), space.domain.dim),
            [Waiting(int(i), point_of(x, space)) for i, x in waiting],
            version,
        )
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError) as error:
        raise StorageError(f"{path} is damaged ({error}); restore it from a copy.") from error


def _created(path: Path, run: Stored) -> sqlite3.Connection:
    """One transaction: a kill leaves the file blank, or whole."""
    texts = [(name, json.dumps(value)) for name, value in run.header.items()]  # not all integers can be written
    with _explained(path, NOTHING_WRITTEN):
        db = _connected(path)
        try:
            db.execute("PRAGMA journal_mode=WAL")
            db.executescript(
                f"BEGIN IMMEDIATE; {SCHEMA} PRAGMA application_id={APPLICATION_ID}; PRAGMA user_version={FORMAT};"
            )
            db.executemany("INSERT INTO header VALUES (?, ?)", texts)
            db.executemany(INSERT, map(row_of, run.trials))
            db.execute("COMMIT")
        except BaseException:
            db.close()
            raise
        return db


def _connected(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    # Autocommit: transactions are written out where they begin and end. Any thread may tell
    whole = path.resolve()
    uri = whole.as_uri() + ("?mode=ro" if read_only else "")
    db = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    try:
        db.execute("PRAGMA synchronous=FULL")
    except BaseException:
        db.close()
        raise
    return db


def _reading(path: Path) -> sqlite3.Connection:
    """A connection to read the file with, which leaves nothing behind.

    To read a file that has a log, SQLite makes files beside it, also where the log is gone because nobody writes.
    Then the file is whole, so a copy of it in memory serves as well.
    """
    log, before = beside(path, "-wal"), path.stat()
    if not log.exists() and not beside(path, "-journal").exists():
        content = bytearray(path.read_bytes())
        after = path.stat()
        is_whole = (before.st_mtime_ns, before.st_size) == (after.st_mtime_ns, after.st_size) and not log.exists()
        if is_whole and len(content) >= SMALLEST_FILE:
            # These say that there is a log, which a database in memory cannot have
            content[18:20] = b"\1\1"
            db = sqlite3.connect(":memory:", isolation_level=None)
            db.deserialize(bytes(content))
            return db
    return _connected(path, read_only=True)


def _is_blank(path: Path) -> bool:
    """Whether there is no file, or one without anything in it, as a kill while it was made leaves it."""
    if not path.exists() or not path.stat().st_size:
        return True
    if path.stat().st_size < SMALLEST_FILE:  # which SQLite may take for a blank one, and overwrite
        return False
    _check_is_database(path)
    # Beside a journal lies a file whose very first write was cut off; that only a writer can undo
    cut_off = beside(path, "-journal").exists()
    with _explained(path, NOTHING_WRITTEN), closing(_connected(path) if cut_off else _reading(path)) as db:
        return not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]


def _check_is_database(path: Path) -> None:
    """Raise StorageError for a file of another kind, which SQLite would call damaged.

    A file with a log beside it is left to SQLite: it may be open in this very process, which would lose its locks on
    the file as soon as anything else in it opens and closes the file (POSIX). Then the next program that looked into
    the run would take the log away from under the optimizer.
    """
    if beside(path, "-wal").exists():
        return
    with _explained(path, NOTHING_WRITTEN), path.open("rb") as file:
        begins = file.read(len(MAGIC))
    if begins and begins != MAGIC:
        raise StorageError(f"{path} is not a run of cylbo, and no SQLite file at all; choose another name for the run.")


@contextmanager
def _explained(path: Path, advice: str) -> Iterator[None]:
    try:
        yield
    except StorageError:
        raise
    # Besides what SQLite and the system say: links in a circle, and damage that SQLite quotes in its own message
    except (sqlite3.Error, OSError, RuntimeError, UnicodeDecodeError) as error:
        raise StorageError(f"{path} cannot be used: {error}; {advice}.") from error
