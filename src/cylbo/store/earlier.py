"""Evaluations out of tables that people or other programs wrote."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
import math
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cylbo.record.metadata import checked_metadata
from cylbo.record.trial import Trial
from cylbo.space.categories import Categorical
from cylbo.space.parameters import Parameter
from cylbo.space.space import Space
from cylbo.store.table import CONSTRAINT, Row, cell_text, columns_of, parsed
from cylbo.types import Bounds

__all__ = ["earlier"]


def earlier(path: str | os.PathLike[str], bounds: Bounds | Space) -> list[Trial]:
    """The closed trials in a CSV or JSON file, for a new run to begin with.

    ```python
    opt = cylbo.Optimizer(space, trials=cylbo.earlier("runs.csv", space))
    ```

    The file is one that `Result.to_csv` or `Result.to_json` wrote, or your own: a row per evaluation, in the column
    `value` what it gave, and a column per parameter, named as `Result.to_csv` names them; in JSON a list of objects.
    Other columns do not matter. CSVs may be separated by commas, tabs or semicolons, then also with decimal commas.
    Values are taken as they are: say `direction="maximize"` to the new run if large ones are good.

    Failures, noise (`std`), constraints and metadata come along. A row is a failed evaluation if its `status` is
    "failed", or if its value is NaN or infinite. It is left out if its `status` is "cancelled", or if it has no value
    yet.

    Args:
        path: the file.
        bounds: the `cylbo.Space` or (d, 2) bounds that the points must lie in: those of the new run, or wider ones if
            that has region="ball".

    Raises:
        ValueError: the file is no such table, or a row is no point of the space; says where.

    """
    path, columns = Path(path), columns_of(bounds)
    found, rows = _rows(path, columns)
    _check_columns(path, found, columns)
    limits = [column for column in found if column.startswith(CONSTRAINT)]
    to_params = bounds.params if isinstance(bounds, Space) else None
    trials: list[Trial] = []
    for number, row in rows:
        place = f"in row {number} of {path}"
        outcome = _outcome(row, limits, place)
        if outcome is not None:
            x = np.array([_entry(row, column, scalar, place) for column, scalar in columns.items()])
            x.flags.writeable = False
            trials.append(Trial(len(trials), x, origin="told", to_params=to_params, **outcome))
    return trials


def _outcome(row: Row, limits: Sequence[str], place: str) -> dict[str, Any] | None:
    """What came of the evaluation in a row, as fields of a trial; None if it has not come to an end."""
    cell, status = row.get("value"), row.get("status")
    value = _number(cell, f"column value {place}")
    has_none = cell in (None, "")
    if status == "cancelled" or (not math.isfinite(value) and (status == "open" or (has_none and status != "failed"))):
        return None
    kept = {"metadata": _metadata(row.get("metadata"))}
    if status == "failed" or not math.isfinite(value):
        reason = row.get("reason")
        if reason in (None, ""):
            reason = "" if status == "failed" else f"its value was {value}"
        return {"status": "failed", "reason": str(reason), **kept}
    std = _number(row.get("std"), f"column std {place}")
    if std < 0.0 or math.isinf(std):
        raise ValueError(f"column std {place} must be at least 0, or empty if it is not known; got {std}.")
    told = [_number(row.get(column), f"column {column} {place}") for column in limits]
    known = [number for number in told if math.isfinite(number)]
    if known and len(known) < len(told):
        raise ValueError(f"{place[3:]} must have a number for every constraint or for none; got {told}.")
    return {"status": "done", "value": value, "std": std, "constraints": tuple(known), **kept}


def _metadata(cell: object) -> dict[str, Any]:
    """What was kept with a trial, out of the cell of a table; what is no JSON object is kept as it is."""
    if cell in (None, ""):
        return {}
    with contextlib.suppress(ValueError):
        cell = json.loads(cell) if isinstance(cell, str) else cell
    return checked_metadata(cell if isinstance(cell, dict) else {"metadata": cell})


def _unquoted(text: str) -> str:
    """The string that a cell stands for; what is in no quotes, or was cut, stands for itself."""
    if text.startswith('"'):
        with contextlib.suppress(ValueError):
            return str(json.loads(text))
    return text


def _choice(text: str, choices: Sequence[Any], number: float | str) -> object:
    """The choice that a cell stands for, or the text itself. What is not in quotes is a string as the last resort."""

    def as_sheets_have_it(choice: object) -> bool:  # TRUE, 1 for 1.0, an empty cell for None
        if choice is None:
            return text == ""
        return text.upper() == str(choice).upper() if isinstance(choice, bool) else number == choice

    others = [choice for choice in choices if not isinstance(choice, str)]
    return next(
        itertools.chain((choice for choice in choices if text == cell_text(choice)), filter(as_sheets_have_it, others)),
        text,  # as it stands, which may be a string that should be in quotes
    )


def _rows(path: Path, columns: dict[str, Parameter]) -> tuple[list[str], list[tuple[int, Row]]]:
    """The columns of a file and its rows, numbered as a spreadsheet does it; in JSON from 1."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} must be text in UTF-8; save it from the spreadsheet as CSV UTF-8.") from error
    if not text.lstrip().startswith(("{", "[")):
        return _csv_rows(path, text, columns)
    try:
        document = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{path} must be JSON from the first bracket to the last: {error}.") from error
    rows = document.get("trials") if isinstance(document, dict) else document
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ValueError(
            f'{path} must hold a list of objects, one per evaluation, alone or under "trials"; for example '
            f'[{{"value": 1.5, "{next(iter(columns))}": ...}}].'
        )
    found = list(dict.fromkeys(column for row in rows for column in row)) if rows else ["value", *columns]
    return found, list(enumerate(rows, 1))


def _csv_rows(path: Path, text: str, columns: dict[str, Parameter]) -> tuple[list[str], list[tuple[int, Row]]]:
    def cells(delimiter: str) -> Any:  # noqa: ANN401 - csv's reader has no public type
        lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
        return ([cell.strip() for cell in line] for line in lines)

    def typed(column: str, cell: str) -> object:
        if column == "reason":
            return _unquoted(cell)
        number, scalar = parsed(cell, decimal), columns.get(column)
        return _choice(cell, scalar.choices, number) if isinstance(scalar, Categorical) else number

    try:
        delimiter = max(",;\t", key=lambda delimiter: "value" in next(filter(any, cells(delimiter)), []))
        decimal = "," if delimiter == ";" else "."
        lines = [(number, line) for number, line in enumerate(cells(delimiter), 1) if any(line)]
    except csv.Error as error:
        raise ValueError(f"{path} must be a CSV: {error}.") from error
    found = lines[0][1] if lines else []
    for number, line in lines[1:]:
        if any(line[len(found) :]):
            raise ValueError(
                f"row {number} of {path} must have {len(found)} cells as its first row, got {len(line)}; put text with "
                f"{delimiter!r} in quotes."
            )
    return found, [(n, {c: typed(c, cell) for c, cell in zip(found, line, strict=False)}) for n, line in lines[1:]]


def _check_columns(path: Path, found: list[str], columns: dict[str, Parameter]) -> None:
    wanted, times = ["value", *columns], Counter(found)
    if missing := [column for column in wanted if not times[column]]:
        raise ValueError(
            f"{path} must have the columns {_listed(wanted)}; missing {_listed(missing)}, found {_listed(found)}. "
            "Rename or add them."
        )
    if twice := [column for column in wanted if times[column] > 1]:
        raise ValueError(f"{path} must have every column once, found {_listed(twice)} twice; remove or rename one.")
    arrays = tuple({column.rpartition("[")[0] + "[" for column in columns if column.endswith("]")})
    if beyond := [column for column in found if column.startswith(arrays) and column not in columns] if arrays else []:
        raise ValueError(
            f"{path} must be of a space with {_listed(list(columns))}, found {_listed(beyond)} beyond them; give the "
            "space that was searched, or remove these columns."
        )


def _listed(columns: list[str]) -> str:
    return (
        ", ".join(map(repr, columns[:6])) + f" and {len(columns) - 6} more" * (len(columns) > 6) if columns else "none"
    )


def _number(cell: object, name: str) -> float:
    """A number, NaN where there is none."""
    if cell is None or cell == "":
        return math.nan
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        with contextlib.suppress(OverflowError):  # an integer beyond 1e308
            return float(cell)
    raise ValueError(f"{name} must be a number, or empty for none; got {cell!r}.")


def _entry(row: Row, column: str, scalar: Parameter, place: str) -> float:
    """A cell as a number of a point."""
    if column not in row:
        raise ValueError(f"column {column} {place} must have a value, got none; add it, or remove the row.")
    try:
        return float(scalar.checked(row[column], f"column {column} {place}")[0])
    except (TypeError, ValueError) as error:
        raise ValueError(f"{error} Correct it, remove the row or give a space that it lies in.") from error
