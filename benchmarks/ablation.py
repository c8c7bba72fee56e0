"""What each part of the default method is worth: variants of it on many problems, compared with one another.

    python -m benchmarks.ablation --variants default ambition-0 isotropic --dims 20 --seeds 2 --jobs 2 --out runs.db

The problems are the paper's functions, the suite `shifted` and those of COCO's bbob-largescale that tell variants
apart. Runs are made and kept as those of `cylbo bench run`. The table shows, over all problems, the mean rank and the
geometric mean of the regret relative to the variants' average; a problem's regret is the geometric mean over seeds,
none counted below a ten-thousandth. With two seeds differences in rank of a few tenths are noise.
"""

import argparse
import dataclasses
import sys
from collections import defaultdict
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import Console

import cylbo
from cylbo.bench import worker
from cylbo.bench.functions import problem
from cylbo.bench.methods import METHODS, Method
from cylbo.bench.methods.ours import search
from cylbo.bench.progress import carry_out
from cylbo.bench.runner import TIME_LIMIT, plan
from cylbo.bench.store import Key, Run, Store
from cylbo.bench.suites import suite
from cylbo.methods import DEFAULT
from cylbo.model.beliefs import Form

ISOTROPIC, STRETCHED, EFFECTS = Form(), Form(stretched=True), Form(stretched=True, effects=True)

VARIANTS: dict[str, cylbo.Method] = {
    "default": DEFAULT,
    "isotropic": dataclasses.replace(DEFAULT, forms=(ISOTROPIC,)),
    "stretched": dataclasses.replace(DEFAULT, forms=(STRETCHED,)),
    "effects": dataclasses.replace(DEFAULT, forms=(EFFECTS,)),
    "no-effects": dataclasses.replace(DEFAULT, forms=(ISOTROPIC, STRETCHED)),
    "no-isotropic": dataclasses.replace(DEFAULT, forms=(STRETCHED, EFFECTS)),
    **{f"ambition-{a}": dataclasses.replace(DEFAULT, ambition=a) for a in (0, 0.02, 0.05, 0.1, 0.2)},
    **{f"climb-{steps}": dataclasses.replace(DEFAULT, max_steps=steps) for steps in (30, 60, 120)},
    "fit-always": dataclasses.replace(DEFAULT, warm_growth=1e-9),
    "more-starts": dataclasses.replace(DEFAULT, n_starts=12, n_leaders=20),
}

COCO = tuple(f"bbob-largescale-f{k}" for k in (2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 17, 18, 20, 21, 22, 23, 24))
PROBLEMS = (*suite("table1").problems, *suite("shifted").problems, *COCO)
COCO_DIMENSIONS = (20, 40, 80, 160, 320, 640)
SMALLEST_REGRET = 1e-4

WORKER = (sys.executable, "-m", "benchmarks.ablation", "worker")


def add_variants() -> None:
    """Make the variants methods of the lab, in this process."""
    for name, config in VARIANTS.items():
        METHODS[name] = Method(name, name, "this library", partial(search, config=config))


def main() -> None:
    """Make the runs that are missing and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=["default", "stretched", "isotropic"])
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=PROBLEMS, metavar="PROBLEM")
    parser.add_argument("--dims", nargs="+", type=int, default=[20])
    parser.add_argument("--budget", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--time-limit", type=float, default=TIME_LIMIT)
    parser.add_argument("--out", type=Path, default=Path("ablation.db"))
    args = parser.parse_args()
    keys = [
        Key(name, dim, args.budget, variant, seed)
        for seed in range(args.seeds)
        for dim in args.dims
        for name in args.problems
        if name not in COCO or dim in COCO_DIMENSIONS
        for variant in args.variants
    ]
    with Store(args.out) as store:
        missing = plan(keys, store, time_limit=args.time_limit, retry_failed=True).missing
        console = Console(stderr=True)
        carry_out(missing, store, console, jobs=args.jobs, threads=1, time_limit=args.time_limit, worker=WORKER)
        runs = {run.key: run for run in store.runs()}
    made = [runs[key] for key in keys if runs[key].status == "finished"]
    print(comparison(regrets(made), args.variants))
    failed = len(keys) - len(made)
    sys.exit(f"{failed} runs did not finish; the same command makes those that failed again." if failed else 0)


def regrets(runs: Iterable[Run]) -> dict[Key, float]:
    """How far each run ended above the minimum."""
    return {run.key: run.best - problem(run.key.problem, run.key.dim, run.key.seed).minimum for run in runs}


def comparison(found: dict[Key, float], variants: list[str]) -> str:
    """A Markdown table of the variants, on the problems and seeds that all of them have runs of."""
    runs: dict[tuple[str, int, int], dict[str, float]] = defaultdict(dict)
    for key, regret in found.items():
        runs[key.problem, key.dim, key.seed][key.method] = np.log(max(regret, SMALLEST_REGRET))
    logs: dict[tuple[str, int], list[list[float]]] = defaultdict(list)
    for (name, dim, _), row in runs.items():
        if len(row) == len(variants):
            logs[name, dim].append([row[variant] for variant in variants])
    table = np.array([np.mean(rows, axis=0) for rows in logs.values()]).reshape(-1, len(variants))
    ranks = 1 + (table[:, :, None] > table[:, None, :]).sum(-1)
    relative = np.exp((table - table.mean(1, keepdims=True)).mean(0))
    rows = [f"| variant | mean rank on {len(table)} problems | relative regret |", "| --- | --- | --- |"]
    rows += [
        f"| {variant} | {rank:.2f} | {ratio:.2f} |"
        for variant, rank, ratio in zip(variants, ranks.mean(0), relative, strict=True)
    ]
    return "\n".join(rows)


if __name__ == "__main__":
    add_variants()
    if sys.argv[1:2] == ["worker"]:
        worker.main(sys.argv[2])
    else:
        main()
