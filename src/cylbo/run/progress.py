"""Progress on the standard error stream: a bar in a terminal, plain lines everywhere else."""

import contextlib
import math
import os
import sys
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from cylbo.record.trial import Trial

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.live import Live

__all__ = ["ProgressBar"]

# The number of last evaluations whose durations tell what the next ones will take
LATELY = 10
# Columns of the bar at the most and at the least; where there are fewer it is left out
BAR, SHORT_BAR = 24, 8
# Seconds from one plain line to the next at the least
BETWEEN_LINES = 1.0


class ProgressBar:
    """Shows evaluations made, the best value, failures, seconds per suggestion and the time left.

    Nothing is shown unless `shown`. In a terminal it is a bar that is redrawn in its place. Where
    the standard error stream is a pipe, a file or a notebook, it is a plain line, at most once a
    second and once for the last evaluation.
    """

    def __init__(
        self,
        budget: int,
        *,
        done: int = 0,
        failed: int = 0,
        shown: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin after `done` evaluations, of which `failed` failed; `clock` gives seconds."""
        self._budget, self._done, self._failed = budget, done, failed
        self._shown, self._clock = shown, clock
        self._best = math.nan
        # What the last suggestions took, and when the last evaluations began and ended
        self._seconds: deque[float] = deque(maxlen=LATELY)
        self._ends: deque[float] = deque(maxlen=LATELY + 1)
        self._began = self._printed = -math.inf
        self._stream: TextIO | None = None
        self._live: Live | None = None
        # Whether there is something that no line has told yet
        self._waiting = True

    def __enter__(self) -> Self:
        self._began = self._clock()
        self._ends.append(self._began)
        if self._shown:
            self._stream = sys.stderr
        if self._stream is not None and _redraws(self._stream):
            self._live = self._bar(self._stream)
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()
        elif self._waiting:
            self._print()

    def update(self, trial: Trial, best: Trial | None) -> None:
        """One more evaluation is in."""
        self._done += 1
        self._failed += trial.status == "failed"
        self._best = math.nan if best is None else best.value
        self._seconds.append(trial.seconds)
        self._ends.append(self._clock())
        self._waiting = True
        if self._live is None and self._ends[-1] - self._printed >= BETWEEN_LINES:
            self._print()

    def _print(self) -> None:
        self._waiting, self._printed = False, self._clock()
        # A stream that was closed or a disk that is full must not end the run
        with contextlib.suppress(OSError, ValueError):
            if self._stream is not None:
                print(f"cylbo  {self._text(elapsed=False)}", file=self._stream, flush=True)

    def _text(self, width: float = math.inf, *, elapsed: bool = True) -> str:
        """As much as fits into `width` columns; what is least important is left out first."""
        now = self._clock()
        count = f"{self._done}/{self._budget}"
        failed = f"{self._failed} failed" if self._failed else ""
        gone = f"{_minutes(now - self._began)} elapsed" if elapsed else ""
        best = cost = cost_in_short = left = ""
        if self._seconds:
            best = "best -" if math.isnan(self._best) else f"best {self._best:.6g}"
            mean = sum(self._seconds) / len(self._seconds)
            cost, cost_in_short = f"{mean:.2f} s per suggestion", f"{mean:.2f} s/ask"
            last = self._ends[-1]
            each = (last - self._ends[0]) / (len(self._ends) - 1)
            left = f"{_minutes(each * (self._budget - self._done) - (now - last))} left"
        for fields in (
            (count, best, failed, cost, gone, left),
            (count, best, failed, cost, left),
            (count, best, failed, cost_in_short, left),
            (count, best, failed, left),
            (count, best, failed),
            (count, best),
        ):
            text = "  ".join(field for field in fields if field)
            if len(text) <= width:
                return text
        return count

    def _bar(self, stream: TextIO) -> "Live":
        # Imported here, because most runs show no bar
        from rich.console import Console
        from rich.live import Live

        # What the objective prints into the terminal goes above the bar. What it prints into a file
        # or a pipe stays there.
        same = sys.stdout is not None and sys.stdout.isatty()
        console = Console(file=stream, force_jupyter=False, highlight=False)
        return Live(self, console=console, refresh_per_second=4, redirect_stdout=same)

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        from rich.text import Text

        text = self._text(options.max_width)
        room = min(BAR, options.max_width - len(text) - 2)
        bar = Text(no_wrap=True, overflow="crop")
        if room >= SHORT_BAR:
            full, empty = "#-" if options.ascii_only else "━─"
            filled = round(room * min(self._done / self._budget, 1.0))
            bar.append(full * filled, "bar.complete")
            bar.append(empty * (room - filled), "bar.back")
            bar.append("  ")
        yield bar.append(text)


def _redraws(stream: TextIO) -> bool:
    """Whether the stream is a terminal in which a line can be drawn anew."""
    # A stream that was closed is asked in vain
    with contextlib.suppress(ValueError):
        return stream.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
    return False


def _minutes(seconds: float) -> str:
    """Minutes and seconds as 3:12, with hours as 1:03:12."""
    minutes, rest = divmod(round(max(seconds, 0.0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
