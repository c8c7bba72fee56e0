"""`cylbo bench`: list, run, merge, report."""

import os
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from typer.core import TyperCommand

from cylbo.bench import problems
from cylbo.bench.methods import METHODS, method
from cylbo.bench.progress import carry_out
from cylbo.bench.runner import TIME_LIMIT, plan
from cylbo.bench.store import Store, StoreError
from cylbo.bench.suites import ALL, SUITES, suite
from cylbo.bench.table import on_record

__all__ = ["app"]

app = typer.Typer(help="The lab: any method on any problem, and the paper's tables.", no_args_is_help=True)
console = Console(highlight=False)


class _SpacedLists(TyperCommand):
    """Lets a repeated option be written once: `SUITE --dims 20 100` for `SUITE --dims 20 --dims 100`.

    Before the suite an option takes one value, as usual: what follows is the suite.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - click's own types
        several = {name for option in self.params if getattr(option, "multiple", False) for name in option.opts}
        flags = {name for option in self.params if getattr(option, "is_flag", False) for name in option.opts}
        spelled: list[str] = []
        option, has_value, suite_seen = "", False, False
        for argument in args:
            if argument.startswith("--"):
                option, has_value = argument, argument in flags
            elif option in several and has_value and suite_seen:
                spelled.append(option)
            elif option and not has_value:
                has_value = True
            else:
                suite_seen = True
            spelled.append(argument)
        return super().parse_args(ctx, spelled)


@app.command("list")
def list_() -> None:
    """Name all suites, problems and methods, and the packages that are missing."""
    suites = Table("suite", "dimensions", "methods", "what", title="Suites", title_justify="left")
    for s in ALL.values():
        suites.add_row(s.name, ", ".join(map(str, s.budgets)), str(len(s.methods)), s.description)
    methods = Table("method", "label", "source", "handles", "missing packages", title="Methods", title_justify="left")
    for m in METHODS.values():
        methods.add_row(m.name, m.label, m.source, ", ".join(sorted(m.handles)), escape(m.cure))
    console.print(suites)
    console.print(methods)
    console.print("Problems: " + "; ".join(problems.NAMES))


@app.command(cls=_SpacedLists)
def run(
    suite_name: Annotated[str, typer.Argument(metavar="SUITE", help=f"One of: {', '.join(ALL)}.")],
    out: Annotated[Path, typer.Option(help="The SQLite file that keeps the runs.")] = Path("results.db"),
    methods: Annotated[list[str] | None, typer.Option(help="Methods instead of the suite's own.")] = None,
    functions_: Annotated[list[str] | None, typer.Option("--functions", help="Instead of the suite's own.")] = None,
    dims: Annotated[list[int] | None, typer.Option(help="Dimensions instead of all of the suite.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Runs of each, with seeds 0, 1, ...")] = None,
    budget: Annotated[int | None, typer.Option(min=1, help="Evaluations instead of the suite's.")] = None,
    batches: Annotated[list[int] | None, typer.Option(min=1, help="Points at a time instead of the suite's.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at the same time.")] = os.cpu_count() or 1,
    threads: Annotated[int, typer.Option(min=1, help="Threads of each run.")] = 1,
    time_limit: Annotated[float, typer.Option(min=1.0, help="Seconds of a run; what it reached is kept.")] = TIME_LIMIT,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Make failed runs again.")] = False,
    known: Annotated[Path | None, typer.Option(help="A runs.csv whose runs are not made again.")] = None,
) -> None:
    """Make the runs of a suite that the file does not hold yet. Stop it whenever you like; the same command goes on."""
    try:
        keys = suite(suite_name).keys(
            problems=functions_, methods=methods, dims=dims, seeds=seeds, budget=budget, batches=batches
        )
        for key in keys:
            method(key.method)
            problems.check_problem(key.problem, key.dim)
        if known is not None:
            kept = on_record(known, time_limit=time_limit, retry_failed=retry_failed)
            on_file = len(keys)
            keys = [key for key in keys if (key._replace(batch=1), key.batch) not in kept]
            console.print(f"{on_file - len(keys)} runs are in {known} already.", soft_wrap=True)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    with _open(out) as store:
        todo = plan(keys, store, time_limit=time_limit, retry_failed=retry_failed)
        for name, why in todo.skipped.items():
            console.print(f"[yellow]skipped[/] {name}: {escape(why)}", soft_wrap=True)
        console.print(f"{len(todo.missing)} runs to make, {todo.finished} are in {out} already.", soft_wrap=True)
        try:
            carry_out(todo.missing, store, console, jobs=jobs, threads=threads, time_limit=time_limit)
        except KeyboardInterrupt:
            console.print("Stopped. Finished runs are kept; the same command makes the others.")
            raise typer.Exit(130) from None
    console.print(f"Done. Tables and pictures: cylbo bench report {out} -o REPORT", soft_wrap=True)


@app.command()
def merge(
    into: Annotated[Path, typer.Argument(help="The file that takes the runs.")],
    files: Annotated[list[Path], typer.Argument(help="Files of other machines.")],
) -> None:
    """Add the runs of other files; a run that both hold is taken from the later file."""
    with _open(into) as store:
        for path in files:
            with _open(path, create=False) as other:
                runs = other.runs()
            store.add(*runs)
            console.print(f"{len(runs)} runs of {path}", soft_wrap=True)


@app.command()
def report(
    results: Annotated[Path | None, typer.Argument(help="A file of `cylbo bench run`, to be added.")] = None,
    out: Annotated[
        Path, typer.Option("-o", "--out", help="The folder of the table of runs, its pages and pictures.")
    ] = Path("report"),
) -> None:
    """Add the runs of a file to the table in the folder, and write the pages of all that the table holds."""
    from cylbo.bench.record import recorded
    from cylbo.bench.report import write_report
    from cylbo.bench.table import RUNS, joined, read_table, write_table

    try:
        records = read_table(out) if results is None or (out / RUNS).exists() else []
        if results is not None:
            with _open(results, create=False) as store:
                records = joined(records, map(recorded, store.runs()))
        paths = write_report(records, out, SUITES.values())
        paths += write_table(records, out)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    console.print(f"{len(paths)} files in {out}", soft_wrap=True)


def _open(path: Path, *, create: bool = True) -> Store:
    try:
        return Store(path, create=create)
    except StoreError as error:
        raise typer.BadParameter(str(error)) from error
