"""One process at a time may write a run: the lock of its file.

The lock of `run.db` is a second file, `run.db-lock`: an SQLite file on which an exclusive transaction is open. The
operating system releases it when its holder dies, however it does. Whoever lets go of it removes the file first, while
the lock is still held; a process that had opened the file just before would then hold the lock of a file that nobody
finds any more, so whoever takes the lock checks that the name still leads to what was locked, and begins again if not.
"""

import contextlib
import sqlite3
from pathlib import Path

from cylbo.errors import StorageError

__all__ = ["Lock", "beside", "checked_place"]

ATTEMPTS = 100  # to lock a file that others remove; two processes rarely need a second one


class Lock:
    """The right to write the run in a file, until `close`."""

    def __init__(self, path: Path) -> None:
        """Take the lock; raises StorageError where another optimizer has it, or no file can be."""
        checked_place(path)
        self._file = beside(path, "-lock")
        for _ in range(ATTEMPTS):
            if (locked := self._locked(path)) is not None:
                self._connection, self._is_held = locked, True
                return
        raise StorageError(f"{self._file}, which marks {path.name} as in use, is removed again and again; by whom?")

    def _locked(self, path: Path) -> sqlite3.Connection | None:
        """A connection that holds the lock; None if the file was removed meanwhile."""
        lock = None
        try:
            self._file.touch()
            self._inode = _inode(self._file)
            lock = sqlite3.connect(self._file, timeout=0.0, isolation_level=None, check_same_thread=False)
            lock.execute("BEGIN EXCLUSIVE")
        except (sqlite3.Error, OSError) as error:
            if lock is not None:
                lock.close()
                if not self._leads_here():
                    return None
            if "locked" in str(error):
                raise StorageError(
                    f"{path} is in use by another optimizer, here or in another process; close() that one or wait for "
                    "it."
                ) from error
            raise StorageError(
                f"{self._file}, which marks {path.name} as in use, cannot be written: {error}."
            ) from error
        if self._leads_here():
            return lock
        lock.close()
        return None

    def _leads_here(self) -> bool:
        """Whether the name leads to the file that was opened: to the one that was there before."""
        return self._inode is not None and self._inode == _inode(self._file)

    def close(self) -> None:
        """Let others have the lock, once; where the system does not remove open files, an empty one stays behind."""
        if self._is_held:
            self._is_held = False
            with contextlib.suppress(OSError):
                self._file.unlink(missing_ok=True)
            self._connection.close()


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def beside(path: Path, ending: str) -> Path:
    """A file that belongs to the run's own: the same one, whatever links lead there."""
    whole = path.resolve()
    return whole.with_name(whole.name + ending)


def checked_place(path: Path) -> None:
    """Raise StorageError where no file can be, or where something else than a file is."""
    if path.is_dir():
        raise StorageError(f"{path} is a folder; choose the name of a file.")
    if path.exists() and not path.is_file():
        raise StorageError(f"{path} is no plain file; choose another name.")
    if not path.parent.is_dir():
        raise StorageError(f"there is no folder {path.parent} to keep {path.name} in; make it first.")
