"""Run our methods on the paper's four functions and print them beside Table 1 of the paper.

    python benchmarks/reproduction.py run --methods paper --jobs 2   # appends to benchmarks/results/reproduction.jsonl
    python benchmarks/reproduction.py table                          # Markdown of everything in that file

A run that is already in the file is not repeated, so the first command can be stopped and continued.
"""

import argparse
import dataclasses
import importlib.metadata
import json
import os
import platform
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Literal

import cylbo
from cylbo.bench.functions import FUNCTIONS, problem

RESULTS = Path(__file__).parent / "results" / "reproduction.jsonl"

# Table 1 of the paper, 20 dimensions and 200 evaluations: mean and standard deviation of 5 runs
PAPER_TABLE: dict[str, dict[str, tuple[float, float]]] = {
    "BOCK": {
        "branin": (0.50, 0.12),
        "hartmann6": (-3.30, 0.02),
        "rosenbrock": (47.87, 33.94),
        "levy": (0.54, 0.13),
    },
    "Matern": {
        "branin": (0.41, 0.00),
        "hartmann6": (-3.29, 0.04),
        "rosenbrock": (230.25, 187.41),
        "levy": (0.38, 0.13),
    },
    # Table 2 of the paper
    "BOCK-W": {"rosenbrock": (1314.03, 1619.73)},
    "BOCK+B": {"rosenbrock": (48.87, 18.33)},
}
# Our methods and the rows of the paper that they are compared with
COUNTERPART = {
    "paper": "BOCK",
    "paper-p9": "BOCK",
    "paper-w": "BOCK-W",
    "paper+b": "BOCK+B",
    "matern": "Matern",
    "default": "BOCK",
}
CONFIGS = cylbo.METHODS | {"paper-p9": dataclasses.replace(cylbo.PAPER, angular_degree=9)}
IN_BOX = ("matern", "default")  # the paper searches the ball with its own kernel and the box with the Matern


def run(method: str, function: str, dim: int, budget: int, seed: int) -> dict[str, Any]:
    """One optimisation, everything worth keeping as JSON."""
    f = problem(function, dim)
    began = time.perf_counter()
    region: Literal["box", "ball"] = "box" if method in IN_BOX else "ball"
    result = cylbo.minimize(f, f.bounds, budget=budget, seed=seed, method=CONFIGS[method], region=region)
    return {
        "method": method,
        "function": function,
        "dim": dim,
        "budget": budget,
        "seed": seed,
        "best": result.fun,
        "values": result.func_vals.tolist(),
        "seconds": time.perf_counter() - began,
        "suggest_seconds": [trial.seconds for trial in result.trials],
        "cylbo": cylbo.__version__,
        "numpy": importlib.metadata.version("numpy"),
        "scipy": importlib.metadata.version("scipy"),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
    }


def read(path: Path) -> list[dict[str, Any]]:
    """The rows of the file, if there is one."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run_missing(args: argparse.Namespace) -> None:
    """Make every run that the file does not hold yet."""
    key = ("method", "function", "dim", "budget", "seed")
    have = {tuple(row[k] for k in key) for row in read(args.results)}
    wanted = [
        (method, function, args.dim, args.budget, seed)
        for method in args.methods
        for function in args.functions
        for seed in range(args.seeds or 5)
    ]
    missing = [work for work in wanted if work not in have]
    print(f"{len(missing)} of {len(wanted)} runs to make", flush=True)
    args.results.parent.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(args.jobs) as pool, args.results.open("a") as file:
        futures = [pool.submit(run, *work) for work in missing]
        for done, future in enumerate(as_completed(futures), 1):
            row = future.result()
            file.write(json.dumps(row) + "\n")
            file.flush()
            name = f"{row['method']} {row['function']} seed {row['seed']}"
            print(f"[{done}/{len(missing)}] {name}: {row['best']:.4f} in {row['seconds']:.0f} s", flush=True)


def table(args: argparse.Namespace) -> None:
    """Print Markdown: mean and (population, as in the paper) standard deviation over the seeds."""
    rows = [row for row in read(args.results) if row["dim"] == args.dim and row["budget"] == args.budget]
    rows = [row for row in rows if args.seeds is None or row["seed"] < args.seeds]
    if not rows:
        sys.exit(f"no runs of {args.dim} dimensions and {args.budget} evaluations in {args.results}; run them first.")
    print(
        "| method | function | seeds | ours: mean ± sd | median (range) | paper: mean ± sd | gap, paper's sd | s/run |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for method in COUNTERPART:
        for function in FUNCTIONS:
            some = [row for row in rows if (row["method"], row["function"]) == (method, function)]
            if not some:
                continue
            best = [row["best"] for row in some]
            mean, sd = statistics.mean(best), statistics.pstdev(best)
            seconds = statistics.mean(row["seconds"] for row in some)
            published = PAPER_TABLE[COUNTERPART[method]].get(function)
            theirs, gap = "", ""
            if published:
                theirs = f"{published[0]:.2f} ± {published[1]:.2f} ({COUNTERPART[method]})"
                gap = (
                    f"{(mean - published[0]) / published[1]:+.1f}"
                    if published[1]
                    else f"{mean - published[0]:+.3f} (sd 0)"
                )
            span = f"{statistics.median(best):.4g} ({min(best):.4g} … {max(best):.4g})"
            cells = [method, function, len(some), f"{mean:.4g} ± {sd:.2g}", span, theirs, gap, f"{seconds:.0f}"]
            print(f"| {' | '.join(map(str, cells))} |")


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["run", "table"])
    parser.add_argument("--methods", nargs="+", default=["paper"], choices=list(COUNTERPART))
    parser.add_argument("--functions", nargs="+", default=list(FUNCTIONS), choices=list(FUNCTIONS))
    parser.add_argument("--dim", type=int, default=20)
    parser.add_argument("--budget", type=int, default=200)
    parser.add_argument("--seeds", type=int, help="seeds 0, 1, ... (default: 5 to run, all to print)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--results", type=Path, default=RESULTS)
    args = parser.parse_args()
    {"run": run_missing, "table": table}[args.action](args)


if __name__ == "__main__":
    main()
