"""Runs as tables for people and other programs, and evaluations out of tables.

One row per trial, the same columns everywhere: id, status, value, std, constraint[0], ..., origin, seconds, reason,
metadata (a JSON object), and the parameters: scalars under their name, arrays as w[0,0], w[0,1], ..., a box without
names as x[0], x[1], ... Where that would be another's column or begin a formula, `param:` stands before the name:
`param:value`.

Numbers have all their digits. In a CSV everything is text, so a string that could be taken for something else (a
number, True, None, a formula) stands in quotes of its own, as in JSON: 1 is a number there and "1" a string. A
spreadsheet that opens the file finds no formula in it.
"""

from __future__ import annotations

import contextlib
import copy
import csv
import io
import itertools
import json
import math
import os
import re
import shutil
import uuid
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cylbo.box import Bounds, Box
from cylbo.geometry import Array
from cylbo.lock import checked_place
from cylbo.metadata import checked_metadata
from cylbo.space import Boolean, Categorical, Integer, Parameter, Real, Space
from cylbo.trial import Direction, Trial
from cylbo.version import __version__

__all__ = ["dataframe", "earlier", "write_csv", "write_json"]

FIRST = {"id": int, "status": str, "value": float, "std": float}  # then the constraints, then the last
LAST = {"origin": str, "seconds": float, "reason": str, "metadata": str}
OURS = FIRST | LAST
THEIRS = {Real: float, Integer: int, Boolean: bool, Categorical: object}
CONSTRAINT = "constraint["
MARKS = ("=", "+", "-", "@", '"')  # begin a formula, or a string in quotes
LONGEST_REASON = 32_767  # characters, all that a spreadsheet's cell holds

Row = dict[str, Any]  # cells by column


def dataframe(trials: Sequence[Trial], bounds: Space | Array) -> Any:  # noqa: ANN401 - of pandas, which may be missing
    """The table as a `pandas.DataFrame`."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError("data frames need pandas: pip install 'cylbo[pandas]'") from error
    types = OURS | {column: THEIRS[type(scalar)] for column, scalar in _columns(bounds).items()}
    cells = _table(trials, bounds).items()
    # Left to guess, pandas would make NaN of None, and 1.0 of the 1 beside it
    return pandas.DataFrame({column: pandas.Series(each, dtype=types.get(column, float)) for column, each in cells})


def write_csv(path: str | os.PathLike[str], trials: Sequence[Trial], bounds: Space | Array) -> None:
    """The table as text that spreadsheets open."""
    texts = {column: [_text(cell) for cell in cells] for column, cells in _table(trials, bounds).items()}
    texts["reason"] = [text[:LONGEST_REASON] for text in texts["reason"]]
    file = io.StringIO(newline="")
    csv.writer(file).writerows([texts, *zip(*texts.values(), strict=True)])
    _replace(path, file.getvalue())


def write_json(
    path: str | os.PathLike[str], trials: Sequence[Trial], bounds: Space | Array, direction: Direction
) -> None:
    """The table as a list of objects under "trials", beside all that is needed to understand it."""
    table = _table(trials, bounds) | {"metadata": [trial.metadata for trial in trials]}
    rows = [[None if cell != cell else cell for cell in row] for row in zip(*table.values(), strict=True)]
    if isinstance(bounds, Space):
        space = bounds.to_json()
    else:
        space = {"low": bounds[:, 0].tolist(), "high": bounds[:, 1].tolist()}
    trials_by_name = [dict(zip(table, row, strict=True)) for row in rows]
    document = {"cylbo": __version__, "direction": direction, "space": space, "trials": trials_by_name}
    # JSON has no word for infinity, which may be a category or metadata; a number beyond 1e308 is read as it
    words = {"Infinity": "1e999", "NaN": "null"}
    text = json.dumps(document, indent=1)
    text = re.sub(r'"(?:[^"\\]|\\.)*"|Infinity|NaN', lambda found: words.get(found[0], found[0]), text)
    _replace(path, text + "\n")


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
    path, columns = Path(path), _columns(bounds)
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


def _table(trials: Sequence[Trial], bounds: Space | Array) -> dict[str, list[Any]]:
    """Cells by column; a number that is not there is NaN."""
    told = itertools.zip_longest(*(trial.constraints for trial in trials), fillvalue=math.nan)
    return {
        **{column: [getattr(trial, column) for trial in trials] for column in FIRST},
        **{f"{CONSTRAINT}{k}]": list(cells) for k, cells in enumerate(told)},
        **{column: [getattr(trial, column) for trial in trials] for column in LAST if column != "metadata"},
        "metadata": [json.dumps(trial.metadata) if trial.metadata else "" for trial in trials],
        **{
            column: [scalar.value(trial.x[i : i + 1]) for trial in trials]
            for i, (column, scalar) in enumerate(_columns(bounds).items())
        },
    }


def _columns(bounds: Bounds | Space) -> dict[str, Parameter]:
    """The scalar behind each column of the parameters, in the order of a point's numbers."""
    if not isinstance(bounds, Space):
        return {f"x[{i}]": Real(low, high) for i, (low, high) in enumerate(Box(bounds).bounds.tolist())}
    endings = {name: _endings(parameter) for name, parameter in bounds.parameters.items()}
    uses = Counter(name + ending for name, each in endings.items() for ending in each)
    columns: dict[str, Parameter] = {}
    for name, parameter in bounds.parameters.items():
        plain = [name + ending for ending in endings[name]]
        scalar = copy.copy(parameter)
        scalar.shape = ()
        if name and _is_clear(name) and all(uses[column] == 1 and not _is_taken(column) for column in plain):
            columns |= dict.fromkeys(plain, scalar)
        else:  # in quotes where one could not tell where the name ends
            shown = name if _is_clear(name) and "[" not in name else _quoted(name)
            columns |= {f"param:{shown}{ending}": scalar for ending in endings[name]}
    return columns


def _endings(parameter: Parameter) -> list[str]:
    """[0,0], [0,1], ... for an array, nothing for a scalar."""
    return [f"[{','.join(map(str, at))}]" if at else "" for at in np.ndindex(parameter.shape)]


def _is_taken(column: str) -> bool:
    return column in OURS or column.startswith((CONSTRAINT, "param:"))


def _is_clear(text: str) -> bool:
    """Whether text survives in a cell: nothing that cannot be seen, and no formula."""
    return text.isprintable() and text == text.strip() and not text.startswith(MARKS)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=not text.isprintable())


def _text(cell: object) -> str:
    """A cell of a CSV; different for different cells."""
    if not isinstance(cell, str):
        return "" if cell != cell else repr(cell)
    is_string = _is_clear(cell) and cell.lower() not in ("true", "false", "none") and isinstance(_parsed(cell), str)
    return cell if is_string else _quoted(cell)


def _unquoted(text: str) -> str:
    """The string that a cell stands for; what is in no quotes, or was cut, stands for itself."""
    if text.startswith('"'):
        with contextlib.suppress(ValueError):
            return str(json.loads(text))
    return text


def _parsed(text: str, decimal: str = ".") -> float | str:
    """The number that a text stands for, or the text itself."""
    try:
        return float(text.replace(decimal, "."))
    except ValueError:
        return text


def _choice(text: str, choices: Sequence[Any], number: float | str) -> object:
    """The choice that a cell stands for, or the text itself. What is not in quotes is a string as the last resort."""

    def as_sheets_have_it(choice: object) -> bool:  # TRUE, 1 for 1.0, an empty cell for None
        if choice is None:
            return text == ""
        return text.upper() == str(choice).upper() if isinstance(choice, bool) else number == choice

    others = [choice for choice in choices if not isinstance(choice, str)]
    return next(
        itertools.chain((choice for choice in choices if text == _text(choice)), filter(as_sheets_have_it, others)),
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
        number, scalar = _parsed(cell, decimal), columns.get(column)
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


def _replace(path: str | os.PathLike[str], text: str) -> None:
    """Write a file that is there as a whole or, whatever happens, as it was before."""
    whole = Path(path).resolve()  # a link stays one
    checked_place(whole)
    temporary = whole.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "x", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if whole.exists():
            shutil.copymode(whole, temporary)
        os.replace(temporary, whole)
    finally:
        temporary.unlink(missing_ok=True)
