"""A progress bar for people: evaluations done, best value, seconds per suggestion, time left."""

from types import TracebackType

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from cylbo.trial import Trial

__all__ = ["ProgressBar"]


class ProgressBar:
    """Shows nothing unless `shown`; never touches the optimisation."""

    def __init__(self, budget: int, *, done: int = 0, shown: bool) -> None:
        self._bar = Progress(
            SpinnerColumn(),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("best [bold]{task.fields[best]}[/]"),
            TextColumn("{task.fields[seconds]} s/suggestion"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            disable=not shown,
        )
        self._task = self._bar.add_task("", total=budget, completed=done, best="-", seconds="-")
        self._seconds: list[float] = []

    def __enter__(self) -> "ProgressBar":
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._bar.stop()

    def update(self, trial: Trial, best: Trial | None) -> None:
        """One more evaluation is in."""
        self._seconds = [*self._seconds[-9:], trial.seconds]  # the last ten tell what the next will cost
        self._bar.update(
            self._task,
            advance=1,
            best="-" if best is None else f"{best.value:.6g}",
            seconds=f"{sum(self._seconds) / len(self._seconds):.2f}",
        )
