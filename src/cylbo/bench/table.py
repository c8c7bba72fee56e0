"""The table of the lab: `runs.csv` with a row per run and `curves.csv` with the curve of each.

Both are plain text, sorted by the columns that name a run. In a curve, column k is the best value after k / 64 of the
budget (see `record.py`), and an empty cell repeats the one before it.
"""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from cylbo.bench.record import PARTS, Name, Record
from cylbo.bench.store import Key
from cylbo.errors import CylboError

__all__ = ["CURVES", "RUNS", "TableError", "joined", "on_record", "read_table", "write_table"]

T = TypeVar("T")

RUNS, CURVES = "runs.csv", "curves.csv"
STATUSES = ("finished", "timeout", "failed")


class TableError(CylboError, ValueError):
    """A file of the table does not hold what it should."""


def _whole(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number


def _optional(text: str) -> float | None:
    return float(text) if text else None


def _status(text: str) -> str:
    if text not in STATUSES:
        raise ValueError(text)
    return text


def _versions(text: str) -> dict[str, str]:
    versions = {}
    for part in filter(None, text.split("; ")):
        name, version = part.split(" ", 1)
        versions[name] = version
    return versions


# What names a run, and what else is kept of it: column -> what it holds in words, and its reader
NAMED: dict[str, tuple[str, Callable[[str], Any]]] = {
    "problem": ("words", str),
    "dimension": ("a whole number", _whole),
    "budget": ("a whole number", _whole),
    "batch": ("a whole number", _whole),
    "method": ("words", str),
    "seed": ("a whole number", _whole),
}
KEPT: dict[str, tuple[str, Callable[[str], Any]]] = {
    "status": (f"one of {', '.join(STATUSES)}", _status),
    "time_limit": ("a number", float),
    "evaluations": ("a whole number", _whole),
    "best": ("a number", float),
    "minimum": ("a number or nothing", _optional),
    "true_value": ("a number or nothing", _optional),
    "seconds": ("a number", float),
    "late_seconds": ("a number", float),
    "late_crashes": ("a whole number", _whole),
    "versions": ("names and versions, as in 'numpy 2.4.6; scipy 1.17.1'", _versions),
    "machine": ("words", str),
    "cores": ("words", str),
    "threads": ("words", str),
    "python": ("words", str),
    "error": ("words", str),
}
POINTS = [str(k) for k in range(PARTS + 1)]


def read_table(folder: Path) -> list[Record]:
    """The records of the two files in the folder, in their order."""
    kept = _rows(folder / RUNS, [*NAMED, *KEPT], _kept)
    curves = _rows(folder / CURVES, [*NAMED, *POINTS], _curve)
    for one, other, path in ((kept, curves, CURVES), (curves, kept, RUNS)):
        lost = next((name for name in one if name not in other), None)
        if lost is not None:
            raise TableError(f"{str(folder / path)!r} has no row for {_told(lost)}, which the other file has.")
    return [Record(key=name[0], batch=name[1], curve=curves[name], **numbers) for name, numbers in kept.items()]


def write_table(records: Iterable[Record], folder: Path) -> list[Path]:
    """Write both files, sorted; return their paths."""
    ordered = sorted(records, key=lambda record: record.order)
    twice = next((a.name for a, b in pairwise(ordered) if a.name == b.name), None)
    if twice is not None:
        raise TableError(f"a run stands in the table once; {_told(twice)} was given twice.")
    texts = {
        folder / RUNS: _text([*NAMED, *KEPT], ([*_name_cells(r), *_kept_cells(r)] for r in ordered)),
        folder / CURVES: _text([*NAMED, *POINTS], ([*_name_cells(r), *_curve_cells(r)] for r in ordered)),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8", newline="")
    return list(texts)


def joined(records: Iterable[Record], more: Iterable[Record]) -> list[Record]:
    """The records of both; of a run that both have the second."""
    return list(({record.name: record for record in records} | {record.name: record for record in more}).values())


def on_record(path: Path, *, time_limit: float, retry_failed: bool = False) -> set[Name]:
    """The runs of a `runs.csv` that need not be made again under this time limit."""
    return {
        name
        for name, numbers in _rows(path, [*NAMED, *KEPT], _kept).items()
        if numbers["status"] == "finished"
        or (numbers["status"] == "timeout" and numbers["time_limit"] >= time_limit)
        or (numbers["status"] == "failed" and not retry_failed)
    }


def _rows(path: Path, header: Sequence[str], parse: Callable[[Mapping[str, str]], T]) -> dict[Name, T]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TableError(
            f"{str(path)!r} could not be read: {error}; `cylbo bench report RESULTS.db -o {path.parent}` makes it."
        ) from error
    lines = csv.reader(io.StringIO(text, newline=""))
    if (found := next(lines, [])) != list(header):
        raise TableError(f"{str(path)!r} should begin with the columns {','.join(header)}; it has {','.join(found)}.")
    rows: dict[Name, T] = {}
    for cells in lines:
        where = f"line {lines.line_num} of {str(path)!r}"
        if len(cells) != len(header):
            raise TableError(f"{where} should have {len(header)} cells; it has {len(cells)}.")
        try:
            row = dict(zip(header, cells, strict=True))
            name = _name(row)
            rows_before = len(rows)
            rows[name] = parse(row)
        except ValueError as error:
            raise TableError(f"{where}: {error}") from error
        if len(rows) == rows_before:
            raise TableError(f"{where} is the second row for {_told(name)}; delete one of the two.")
    return rows


def _value(row: Mapping[str, str], column: str, what: str, read: Callable[[str], Any]) -> Any:  # noqa: ANN401
    try:
        return read(row[column])
    except ValueError as error:
        raise ValueError(f"{column} should be {what}; it is {row[column]!r}.") from error


def _name(row: Mapping[str, str]) -> Name:
    problem, dim, budget, batch, method, seed = (_value(row, column, *kind) for column, kind in NAMED.items())
    return Key(problem, dim, budget, method, seed), batch


def _kept(row: Mapping[str, str]) -> dict[str, Any]:
    return {column: _value(row, column, *kind) for column, kind in KEPT.items()}


def _curve(row: Mapping[str, str]) -> tuple[float, ...]:
    if not row[POINTS[0]]:
        raise ValueError("column 0 of a curve should be a number; it is empty.")
    numbers: list[float] = []
    for column in POINTS:
        numbers.append(_value(row, column, "a number or nothing", float) if row[column] else numbers[-1])
    return tuple(numbers)


def _name_cells(record: Record) -> list[str]:
    return [str(part) for part in record.order]


def _kept_cells(record: Record) -> list[str]:
    cells = []
    for column in KEPT:
        value = getattr(record, column)
        if column == "versions":
            cells.append("; ".join(f"{name} {version}" for name, version in sorted(value.items())))
        else:
            cells.append("" if value is None else _number(value) if isinstance(value, float) else str(value))
    return cells


def _curve_cells(record: Record) -> list[str]:
    texts = [_number(number) for number in record.curve]
    return [texts[0], *("" if text == before else text for before, text in pairwise(texts))]


def _number(number: float) -> str:
    """The shortest text that reads as the same number."""
    return repr(number).removesuffix(".0")


def _text(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows([header, *rows])
    return out.getvalue()


def _told(name: Name) -> str:
    key, batch = name
    at_a_time = f", {batch} points at a time" if batch > 1 else ""
    return (
        f"{key.method} on {key.problem} in {key.dim} dimensions, {key.budget} evaluations{at_a_time}, seed {key.seed}"
    )
