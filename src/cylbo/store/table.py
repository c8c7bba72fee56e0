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

from cylbo._version import __version__
from cylbo.record.trial import Trial
from cylbo.space.box import Box
from cylbo.space.categories import Boolean, Categorical
from cylbo.space.parameters import Integer, Parameter, Real
from cylbo.space.space import Space
from cylbo.store.lock import checked_place
from cylbo.types import Array, Bounds, Direction

__all__ = ["CONSTRAINT", "Row", "cell_text", "columns_of", "dataframe", "parsed", "write_csv", "write_json"]

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
    types = OURS | {column: THEIRS[type(scalar)] for column, scalar in columns_of(bounds).items()}
    cells = _table(trials, bounds).items()
    # Left to guess, pandas would make NaN of None, and 1.0 of the 1 beside it
    return pandas.DataFrame({column: pandas.Series(each, dtype=types.get(column, float)) for column, each in cells})


def write_csv(path: str | os.PathLike[str], trials: Sequence[Trial], bounds: Space | Array) -> None:
    """The table as text that spreadsheets open."""
    texts = {column: [cell_text(cell) for cell in cells] for column, cells in _table(trials, bounds).items()}
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
            for i, (column, scalar) in enumerate(columns_of(bounds).items())
        },
    }


def columns_of(bounds: Bounds | Space) -> dict[str, Parameter]:
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


def cell_text(cell: object) -> str:
    """A cell of a CSV; different for different cells."""
    if not isinstance(cell, str):
        return "" if cell != cell else repr(cell)
    is_string = _is_clear(cell) and cell.lower() not in ("true", "false", "none") and isinstance(parsed(cell), str)
    return cell if is_string else _quoted(cell)


def parsed(text: str, decimal: str = ".") -> float | str:
    """The number that a text stands for, or the text itself."""
    try:
        return float(text.replace(decimal, "."))
    except ValueError:
        return text


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
