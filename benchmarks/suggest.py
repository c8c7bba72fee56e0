"""Seconds per suggestion of cylbo beside BoTorch's default and Optuna's GPSampler, on the same data, in one run.

    python benchmarks/suggest.py [--repeats 1]
    python benchmarks/suggest.py --growth        # the default method alone, as d and n grow, and its memory

BoTorch: as in `cylbo bench` (SingleTaskGP, its default, fitted by fit_gpytorch_mll; LogExpectedImprovement maximised by
optimize_acqf with 10 restarts and 512 raw samples; standardised values), with the threads it finds.
Optuna: the second `ask` of a study that holds the data, so that its kernel parameters are warm.
cylbo: `paper` in full (10 sweeps, 20,000 Sobol points, 20 starts), its chain warm, as it is in every round after the
first; `default` on average over the rounds of the last tenth, because it fits everything anew once in such a stretch
and little in between. One BLAS thread, as always.

The data matter more to BoTorch's time than their number: its fit stops when L-BFGS does. So there are three kinds:
`uniform` points of the box, on Levy and on Rosenbrock, and `search`: a quarter uniform, the others normal steps of
random size about the best so far, which is what n evaluations of an optimiser look like.
"""

import argparse
import importlib.metadata
import math
import os
import platform
import resource
import statistics
import time
import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from cylbo.bench.functions import problem
from cylbo.bench.methods import botorch, optuna
from cylbo.methods import DEFAULT
from cylbo.model.scaling import standardized
from cylbo.numerics.threads import blas_threads
from cylbo.run.optimizer import Optimizer
from cylbo.search.data import Known
from cylbo.search.suggest import suggest
from cylbo.space.box import Box

Array = NDArray[np.float64]

ROUNDS = 20  # between two fits of all forms, timed
SIZES = ((20, 200), (100, 600))
KINDS = (("levy", "uniform"), ("rosenbrock", "uniform"), ("levy", "search"), ("rosenbrock", "search"))


def data(function: str, kind: str, dim: int, n: int, seed: int) -> tuple[Array, Array]:
    """Points (n, d) of [-1, 1]^d, the centre first, and their values (n,)."""
    f, rng = problem(function, dim), np.random.default_rng(seed)
    x = np.zeros((n, dim))
    y = np.array([f.at_center] + [np.inf] * (n - 1))
    for i in range(1, n):
        if kind == "uniform" or i % 4 == 1:
            x[i] = rng.uniform(-1, 1, dim)
        else:
            size = 10 ** rng.uniform(-2.5, -0.5)
            x[i] = np.clip(x[y.argmin()] + size * rng.standard_normal(dim), -1, 1)
        y[i] = f(x[i])
    return x, y


def seconds_of_paper(x: Array, y: Array, seed: int) -> float:
    """One suggestion with a warm chain: the second ask, after the first was told."""
    opt = Optimizer(_box(x), seed=seed, method="paper", x0=x[:-1], y0=y[:-1])
    opt.ask()  # the first fit, a hundred sweeps, happens once per run
    opt.tell(len(x) - 1, float(y[-1]))
    return opt.ask().seconds


def seconds_of_default(x: Array, y: Array, seed: int) -> float:
    """The mean over a tenth of growth: one fit of all forms, and rounds without it, of which the last few are timed."""
    stretch = len(x) - math.floor(len(x) / (1.0 + DEFAULT.refit_growth))
    domain, none = Box(_box(x)).domain, np.empty((0, x.shape[1]))
    state, seconds = None, []
    with blas_threads(DEFAULT.threads), np.errstate(all="ignore"):
        for i in range(len(x) - min(ROUNDS, stretch - 1), len(x) + 1):
            known = Known(x[:i], y[:i], pending=none, failed=none)
            began = time.perf_counter()
            state = suggest(known, state, domain, DEFAULT, np.random.default_rng([seed, i])).state
            seconds.append(time.perf_counter() - began)
    with_fit, *others = seconds
    return (with_fit + (stretch - 1) * statistics.mean(others)) / stretch


def _box(x: Array) -> Array:
    return np.tile([-1.0, 1.0], (x.shape[1], 1))


def seconds_of_botorch(x: Array, y: Array, seed: int) -> float:
    """Fit the default model and maximise LogEI once, with the lab's pieces."""
    import torch

    torch.manual_seed(seed)
    train_x, train_y = torch.from_numpy((x + 1) / 2), torch.from_numpy(-standardized(y))[:, None]
    began = time.perf_counter()
    model = botorch.gaussian_process(train_x, train_y, None)
    botorch.maximizer(botorch.log_ei(model, train_y), x.shape[1])
    return time.perf_counter() - began


def seconds_of_optuna(x: Array, y: Array, seed: int) -> float:
    """One ask of the lab's GPSampler, after another that leaves its kernel parameters warm."""
    from optuna import create_study, create_trial

    box = optuna.distributions(x.shape[1])
    with optuna.silence():
        study = create_study(sampler=optuna.gaussian_process(seed))
        for point, value in zip(x[:-1], y[:-1], strict=True):
            params = dict(zip(box, point.tolist(), strict=True))
            study.add_trial(create_trial(params=params, distributions=box, value=float(value)))
        study.tell(study.ask(box), float(y[-1]))
        began = time.perf_counter()
        study.ask(box)
        return time.perf_counter() - began


def growth() -> None:
    """How the default method's cost grows: d at n = 300, n at d = 100; exponents by least squares on logarithms."""
    for title, sizes in (
        ("dimension, n = 300", [(d, 300) for d in (20, 100, 500, 2000, 6000)]),
        ("evaluations, d = 100", [(100, n) for n in (100, 200, 400, 800, 1200, 2000)]),
    ):
        print(f"| {title} | seconds per suggestion, levy, search |\n| --- | --- |")
        log_size, log_seconds = [], []
        for d, n in sizes:
            x, y = data("levy", "search", d, n, 0)
            seconds = seconds_of_default(x, y, 0)
            varying = d if "dimension" in title else n
            log_size.append(math.log(varying))
            log_seconds.append(math.log(seconds))
            print(f"| {varying} | {seconds:.3f} |", flush=True)
        exponent = np.polyfit(log_size, log_seconds, 1)[0]
        print(f"\nexponent {exponent:.2f}\n")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak memory {peak:.2f} GiB")


def main() -> None:
    """Measure, and print a Markdown table row by row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=1, help="data sets (seeds) per row; the median is shown")
    parser.add_argument("--growth", action="store_true", help="how the default's cost grows with d and n")
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # the peers' own, about their own input
    packages = ("cylbo", "botorch", "optuna", "torch", "numpy", "scipy")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores"
    print(f"{versions}; {machine}; median of {args.repeats} data sets per row\n")
    if args.growth:
        growth()
        return
    contestants: dict[str, Callable[[Array, Array, int], float]] = {
        "BoTorch": seconds_of_botorch,
        "Optuna GP": seconds_of_optuna,
        "paper": seconds_of_paper,
        "default": seconds_of_default,
    }
    for seconds_of in contestants.values():
        seconds_of(*data("levy", "uniform", 5, 20, 0), 0)  # imports and first-call costs
    pairs = [("BoTorch", "paper"), ("BoTorch", "default"), ("Optuna GP", "default")]
    print(_row("d", "n", "data", *(f"{name}, s" for name in contestants), *(f"{a} / {b}" for a, b in pairs)))
    print(_row(*["---"] * (3 + len(contestants) + len(pairs))))
    ratios: dict[tuple[int, int], list[list[float]]] = {}
    work = [(d, n, function, kind) for d, n in SIZES for function, kind in KINDS]
    for d, n, function, kind in track(work, console=Console(stderr=True), description="measuring"):
        sets = [(*data(function, kind, d, n, seed), seed) for seed in range(args.repeats)]
        seconds = {name: statistics.median(of(*each) for each in sets) for name, of in contestants.items()}
        ratio = [seconds[a] / seconds[b] for a, b in pairs]
        ratios.setdefault((d, n), []).append(ratio)
        print(_row(d, n, f"{function}, {kind}", *(f"{s:.2f}" for s in seconds.values()), *(f"{r:.1f}" for r in ratio)))
    print()
    for (d, n), rows in ratios.items():
        means = np.exp(np.log(rows).mean(0))
        said = ", ".join(f"{a} / {b} {mean:.1f}" for (a, b), mean in zip(pairs, means, strict=True))
        print(f"- d = {d}, n = {n}, geometric means: {said}")


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    main()
