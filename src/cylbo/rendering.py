"""What people see of the package's objects: short text in a terminal, plain tables in a notebook.

Names, choices, reasons and messages come from the user: they may be long, run over several lines,
or be HTML. Every function here makes them short and keeps them on one line, and `html_table`
escapes every cell.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cylbo.types import Array

if TYPE_CHECKING:
    from cylbo.record.trial import Trial

__all__ = [
    "Point",
    "Rows",
    "aligned",
    "cut",
    "described_optimizer",
    "html_table",
    "listed",
    "one_line",
    "point_rows",
    "shown",
    "shown_list",
    "shown_name",
    "shown_point",
    "spelled",
]

# Parameters of a point, entries of an array, and choices
MOST_SHOWN = 6
# Lines of a listing between its first and its last
MOST_ENTRIES = 13
# Characters of a listing on one line, of a line in a long one, of a value and of a name
LONGEST_LISTING = 500
LONGEST_ENTRY = 100
LONGEST_VALUE = 48
LONGEST_NAME = 32
# Characters of a cell in a notebook, beyond which it could only be an accident
LONGEST_CELL = 1000

# A table of two columns: labels and what they stand for
Rows = list[tuple[str, str]]
# Coordinates (d,) of a box, or values by name
Point = Array | Mapping[str, Any]


def spelled(thing: object, spell: Callable[[object], str] = str) -> str:
    """Anything as text that can be stored and printed, whatever its own way of saying it does."""
    try:
        text = spell(thing)
    # An integer beyond 4300 digits, or an object of the user's
    except Exception:
        text = f"{type(thing).__name__} that cannot be shown"
    # Half characters occur in names of files that are not UTF-8
    return text.encode(errors="backslashreplace").decode()


def cut(text: str, most: int) -> str:
    """The text itself if it is no longer than that, otherwise its beginning and three dots."""
    return text if len(text) <= most else text[: most - 3] + "..."


def one_line(text: str, most: int) -> str:
    """Text on one line: line breaks become spaces, and other invisible characters escapes."""
    # Escapes make text only longer, so what lies beyond the cut need not be looked at
    words = " ".join(text.split())[: most + 1]
    visible = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in words)
    return cut("".join(visible), most)


def shown(value: object) -> str:
    """A value of a parameter.

    A float has six significant digits, a long string is cut, and a large array is summarised.
    """
    if isinstance(value, np.ndarray):
        if value.size <= MOST_SHOWN:
            return _nested(value.tolist())
        low, high = shown(value.min().item()), shown(value.max().item())
        return f"<shape {value.shape}, from {low} to {high}>"
    return f"{value:.6g}" if isinstance(value, float) else cut(spelled(value, repr), LONGEST_VALUE)


def shown_name(name: str) -> str:
    """A name as it is, in quotes where one could not see where it begins and ends."""
    is_clear = name and name.isprintable() and name == name.strip()
    return cut(name if is_clear else repr(name), LONGEST_NAME)


def shown_list(values: Sequence[object]) -> str:
    """The first few values, and how many more there are."""
    more = [f"... and {len(values) - MOST_SHOWN} more"] if len(values) > MOST_SHOWN else []
    return ", ".join([*map(shown, values[:MOST_SHOWN]), *more])


def shown_point(point: Point) -> str:
    """All parameters of a point on one line while they are few, otherwise their number."""
    if len(point) > MOST_SHOWN:
        return f"<{len(point)} parameters>"
    if not isinstance(point, Mapping):
        return _nested(np.asarray(point).tolist())
    each = (f"{cut(repr(name), LONGEST_NAME)}: {shown(value)}" for name, value in point.items())
    return "{" + ", ".join(each) + "}"


def point_rows(point: Point, rest: str) -> Rows:
    """A row for each of the first few parameters of a point, and one that counts the others.

    The last row says with `rest` where the others are.
    """
    if isinstance(point, Mapping):
        first = list(point.items())[:MOST_SHOWN]
        rows = [(shown_name(name), shown(value)) for name, value in first]
    else:
        rows = [(f"x[{i}]", shown(value)) for i, value in enumerate(point[:MOST_SHOWN].tolist())]
    more = len(point) - MOST_SHOWN
    return [*rows, ("...", f"and {more} more: {rest}")] if more > 0 else rows


def aligned(rows: Rows) -> str:
    """Two columns of text; what stands in the second may have several lines."""
    # How wide letters are in a terminal is a table that only people who look need
    from rich.cells import cell_len

    width = max(cell_len(label) for label, _ in rows) + 2
    lines = []
    for label, text in rows:
        margins = [label + " " * (width - cell_len(label)), " " * width]
        lines += [margins[i > 0] + line for i, line in enumerate(text.split("\n"))]
    return "\n".join(lines)


def listed(opening: str, entries: Sequence[str], closing: str) -> str:
    """Python code that makes something of entries: on one line, or on a line each if it is long.

    The code can be evaluated as long as every entry is there and none of them is cut. From 14
    entries on, those in the middle are counted instead.
    """
    whole = f"{opening}{', '.join(entries)}{closing}"
    if len(entries) <= MOST_SHOWN and len(whole) <= LONGEST_LISTING:
        return whole
    lines = [f"    {cut(entry, LONGEST_ENTRY)}," for entry in entries]
    if len(lines) > MOST_ENTRIES:
        half = MOST_ENTRIES // 2
        lines[half:-half] = [f"    ... and {len(lines) - 2 * half} more ..."]
    return "\n".join([opening, *lines, closing])


def html_table(rows: Sequence[Sequence[str]], head: Sequence[str] = (), caption: str = "") -> str:
    """A plain HTML table without colours.

    Without a head, the first cell of each row is the row's label.
    """
    # Notebooks align cells to the right unless the cells themselves say otherwise
    left = 'style="text-align: left"'

    def escaped(text: str) -> str:
        return html.escape(one_line(text, LONGEST_CELL))

    def line(cells: Sequence[str], labels: int) -> str:
        kinds = ["th"] * labels + ["td"] * (len(cells) - labels)
        each = (f"<{k} {left}>{escaped(cell)}</{k}>" for k, cell in zip(kinds, cells, strict=True))
        return f"<tr>{''.join(each)}</tr>"

    title = f"<caption {left}>{escaped(caption)}</caption>" if caption else ""
    top = f"<thead>{line(head, len(head))}</thead>" if head else ""
    body = "".join(line(row, 0 if head else 1) for row in rows)
    return f"<table>{title}{top}<tbody>{body}</tbody></table>"


def described_optimizer(
    n_parameters: int,
    method: str,
    direction: str,
    counts: Mapping[str, int],
    best: Trial | None,
    storage: object | None,
) -> str:
    """An optimizer on one line.

    Args:
        n_parameters: the number of parameters that are searched.
        method: the name of the method.
        direction: "minimize" or "maximize".
        counts: the number of trials of each status; a status without trials may be left out.
        best: the best trial so far.
        storage: the path of the file that the run is kept in.

    """
    known = ["done", "failed", "open", "cancelled"]
    statuses = [f"{counts[status]} {status}" for status in known if counts.get(status)]
    parts = [
        f"{n_parameters} parameter{'s' * (n_parameters != 1)}, method {shown(method)}, {direction}",
        ", ".join(statuses) or "no trials yet",
    ]
    if best is not None and not math.isnan(best.value):
        parts.append(f"best value {shown(best.value)} (trial {best.id})")
    if storage is not None:
        parts.append(f"stored in {one_line(str(storage), LONGEST_ENTRY)}")
    return f"<Optimizer: {'; '.join(parts)}>"


def _nested(entries: object) -> str:
    """Lists of lists of numbers, with six significant digits each."""
    return f"[{', '.join(map(_nested, entries))}]" if isinstance(entries, list) else shown(entries)
