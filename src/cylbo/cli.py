"""The command line: arguments in, library calls, text out."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

import cylbo
from cylbo.bench import cli as bench
from cylbo.bench.functions import problem

__all__ = ["app"]

app = typer.Typer(help="Bayesian optimisation with cylindrical kernels.", no_args_is_help=True, add_completion=False)
app.add_typer(bench.app, name="bench")

# Tables 1 and 2 of Oh et al. 2018: 20-d Rosenbrock after 200 evaluations, mean of 5 runs
PAPER_BOCK, PAPER_MATERN = 47.87, 230.25


@app.callback(invoke_without_command=True)
def main(version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False) -> None:
    """Bayesian optimisation with cylindrical kernels."""
    if version:
        typer.echo(f"cylbo {cylbo.__version__}")
        raise typer.Exit


@app.command()
def demo(
    method: Annotated[str, typer.Option(help=f"One of: {', '.join(cylbo.METHODS)}.")] = "default",
    budget: Annotated[int, typer.Option(min=2, help="Evaluations.")] = 200,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    plot: Annotated[Path, typer.Option(help="Where to save the convergence plot.")] = Path("demo.png"),
) -> None:
    """Minimise the paper's 20-dimensional Rosenbrock function from its centre and draw how it went."""
    if method not in cylbo.METHODS:
        raise typer.BadParameter(f"got {method!r}; choose one of: {', '.join(cylbo.METHODS)}.", param_hint="--method")
    if not plot.parent.is_dir():
        raise typer.BadParameter(f"the folder {str(plot.parent)!r} does not exist.", param_hint="--plot")
    console = Console(highlight=False)
    drawing = _can_draw()
    if not drawing:
        # Without markup, in which [plot] would be a style
        console.print(
            "There will be no picture: plots need matplotlib (pip install 'cylbo[plot]').", markup=False, soft_wrap=True
        )
    f = problem("rosenbrock", 20)
    console.print(f"Minimising the 20-d Rosenbrock of the paper, {budget} evaluations, method {method!r}, seed {seed}.")
    console.print(f"It begins at the centre, {f.at_center:.2f}; the optimum is 0.")
    try:
        result = cylbo.minimize(f, f.bounds, budget=budget, seed=seed, method=method, progress=True)
    except KeyboardInterrupt as stop:
        result = stop.result  # type: ignore[attr-defined]
        console.print(f"Stopped after {result.nfev} evaluations; what they gave is kept.")
        if result.nfev == 0:
            raise typer.Exit(130) from stop
    seconds = [trial.seconds for trial in result.trials if trial.origin == "model"]
    console.print(f"Best value [bold]{result.fun:.6g}[/] after {result.nfev} evaluations ({result.message}).")
    console.print(f"Published, mean of 5 runs of 200 evaluations: BOCK {PAPER_BOCK}, Matern {PAPER_MATERN}.")
    if seconds:
        console.print(f"{sum(seconds) / len(seconds):.2f} s per suggestion on average.")
    if drawing:
        cylbo.plot.convergence(
            result,
            title=f"20-d Rosenbrock, method {method!r}, seed {seed}",
            references={"BOCK, published (200 evaluations)": PAPER_BOCK, "centre": f.at_center},
            optimum=f.minimum,
            path=plot,
        )
        console.print(f"Convergence plot: {plot}", markup=False, soft_wrap=True)


def _can_draw() -> bool:
    """Whether matplotlib is there; if so it draws into files from here on, which needs no display."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    return True
