"""What each part of the default method is worth: variants of it on many problems, compared with one another.

    python -m benchmarks.ablation --variants default ambition-0 isotropic --dims 20 --seeds 2 --jobs 2 --out runs.jsonl

The problems are the paper's functions, the suite `shifted` and those of COCO's bbob-largescale that tell variants
apart. Finished runs are kept in the file and not repeated. The table shows, over all problems, the mean rank and the
geometric mean of the regret relative to the variants' average; a problem's regret is the geometric mean over seeds,
none counted below a ten-thousandth. With two seeds differences in rank of a few tenths are noise.
"""

import argparse
import dataclasses
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

from cylbo.bench.functions import problem
from cylbo.bench.suites import suite
from cylbo.methods import DEFAULT
from cylbo.model.beliefs import Form
from cylbo.run.optimizer import Optimizer
from cylbo.search.settings import Method

from .pool import append_line, make_each, read_lines

ISOTROPIC, STRETCHED, EFFECTS = Form(), Form(stretched=True), Form(stretched=True, effects=True)

VARIANTS: dict[str, Method] = {
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

Key = tuple[str, str, int, int, int]  # variant, problem, dimension, evaluations, seed


def regret(key: Key) -> float:
    """What one run reached."""
    variant, name, dim, budget, seed = key
    f = problem(name, dim, instance=seed)
    opt = Optimizer([(-1.0, 1.0)] * dim, seed=seed, method=VARIANTS[variant])
    for _ in range(budget):
        trial = opt.ask()
        opt.tell(trial, float(f(trial.x)))
    return min(trial.value for trial in opt.trials if trial.value is not None) - f.minimum


def main() -> None:
    """Make the runs that are missing and print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=["default", "stretched", "isotropic"])
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=PROBLEMS, metavar="PROBLEM")
    parser.add_argument("--dims", nargs="+", type=int, default=[20])
    parser.add_argument("--budget", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("ablation.jsonl"))
    args = parser.parse_args()
    keys: list[Key] = [
        (variant, name, dim, args.budget, seed)
        for seed in range(args.seeds)
        for dim in args.dims
        for name in args.problems
        if name not in COCO or dim in COCO_DIMENSIONS
        for variant in args.variants
    ]
    found: dict[Key, float] = {tuple(key): value for key, value in read_lines(args.out)}
    missing = [key for key in keys if key not in found]

    def keep(key: Key, value: float) -> None:
        found[key] = value
        append_line([key, value], args.out)

    failed = make_each("variants", regret, missing, keep, jobs=args.jobs)
    print(comparison({key: found[key] for key in keys if key in found}, args.variants))
    sys.exit(f"{failed} runs failed; the same command makes them again." if failed else 0)


def comparison(found: dict[Key, float], variants: list[str]) -> str:
    """A Markdown table of the variants, on the problems and seeds that all of them have runs of."""
    runs: dict[tuple[str, int, int], dict[str, float]] = defaultdict(dict)
    for (variant, name, dim, _, seed), value in found.items():
        runs[name, dim, seed][variant] = np.log(max(value, SMALLEST_REGRET))
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
    main()
