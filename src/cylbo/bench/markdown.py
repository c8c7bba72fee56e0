"""Words, numbers and tables of a report as Markdown."""

import html
import re
from collections.abc import Iterable, Sequence

__all__ = ["NOTHING", "escaped", "listed", "mean_and_sd", "regret_text", "seconds_text", "span", "table"]

NOTHING = "–"  # a cell without a number


def escaped(words: str) -> str:
    """Words that Markdown and HTML leave as they are."""
    return re.sub(r"([\\`*_\[\]|~])", r"\\\1", html.escape(" ".join(words.split()), quote=False))


def listed(names: Iterable[str]) -> str:
    """The names, escaped, with semicolons between them: labels may hold commas."""
    return "; ".join(map(escaped, names))


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1) -> list[str]:
    """A Markdown table whose first columns hold words and the others numbers; its cells are Markdown already."""
    marks = ["---"] * words + ["---:"] * (len(header) - words)
    return [f"| {' | '.join(row)} |" for row in (header, marks, *rows)]


def mean_and_sd(mean: float, sd: float) -> str:
    """Mean ± standard deviation with the paper's two decimals; large ones with as many digits."""
    form = ".2f" if abs(mean) < 1e6 and sd < 1e6 else ".3e"
    return f"{mean:{form}} ± {sd:{form}}"


def regret_text(number: float) -> str:
    """Three digits, and whole numbers in full up to a million."""
    return f"{number:.0f}" if 1e3 <= number < 1e6 else f"{number:.3g}"


def seconds_text(seconds: float, size: float) -> str:
    """Seconds with as many decimals as a number of that size deserves; milliseconds at the most."""
    return f"{seconds:.3f}" if size < 10.0 else f"{seconds:.1f}"


def span(counts: Iterable[int]) -> str:
    """The smallest and the largest count; one number if they are the same."""
    counts = list(counts)
    return str(counts[0]) if len(set(counts)) == 1 else f"{min(counts)}–{max(counts)}"
