"""Seconds per suggestion of cylbo beside BoTorch's default, on the same data, in one run.

    python benchmarks/suggest.py [--repeats 1]

BoTorch: SingleTaskGP (its default, dimension-scaled ARD kernel) fitted by fit_gpytorch_mll, LogExpectedImprovement
maximised by optimize_acqf with 10 restarts and 512 raw samples, standardised values, with the threads it finds.
cylbo: `paper` in full (10 sweeps, 20,000 Sobol points, 20 starts) and `default`, in the state of a run under way: the
chain is warm, as it is in every round after the first. One BLAS thread, as always.

The data matter more to BoTorch's time than their number: its fit stops when L-BFGS does. So there are three kinds:
`uniform` points of the box, on Levy and on Rosenbrock, and `search`: a quarter uniform, the others normal steps of
random size about the best so far, which is what n evaluations of an optimiser look like.
"""

import argparse
import importlib.metadata
import os
import platform
import statistics
import time
import warnings

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from cylbo.bench.functions import problem
from cylbo.optimizer import Optimizer

Array = NDArray[np.float64]

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


def seconds_of_cylbo(method: str, x: Array, y: Array, seed: int) -> float:
    """One suggestion with a warm chain: the second ask, after the first was told."""
    bounds = np.tile([-1.0, 1.0], (x.shape[1], 1))
    opt = Optimizer(bounds, seed=seed, method=method, x0=x[:-1], y0=y[:-1])
    opt.ask()  # the first fit, a hundred sweeps, happens once per run
    opt.tell(len(x) - 1, float(y[-1]))
    return opt.ask().seconds


def seconds_of_botorch(x: Array, y: Array, seed: int) -> float:
    """Fit the default model and maximise LogEI once."""
    import torch
    from botorch.acquisition.analytic import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.optim.optimize import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.manual_seed(seed)
    train_x = torch.from_numpy((x + 1) / 2)
    train_y = torch.from_numpy(-(y - y.mean()) / y.std())[:, None]
    corners = torch.stack([torch.zeros(x.shape[1]), torch.ones(x.shape[1])]).double()
    began = time.perf_counter()
    model = SingleTaskGP(train_x, train_y)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    acquisition = LogExpectedImprovement(model, train_y.max())
    optimize_acqf(acquisition, bounds=corners, q=1, num_restarts=10, raw_samples=512)
    return time.perf_counter() - began


def main() -> None:
    """Measure, and print a Markdown table row by row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=1, help="data sets (seeds) per row; the median is shown")
    args = parser.parse_args()
    warnings.simplefilter("ignore")  # BoTorch's own, about its own input
    seconds_of_botorch(*data("levy", "uniform", 5, 20, 0), seed=0)  # imports and first-call costs
    seconds_of_cylbo("paper", *data("levy", "uniform", 5, 20, 0), seed=0)
    packages = ("cylbo", "botorch", "torch", "numpy", "scipy")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores"
    print(f"{versions}; {machine}; median of {args.repeats} data sets per row\n")
    print("| d | n | data | BoTorch, s | paper, s | default, s | BoTorch / paper | BoTorch / default |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    ratios: dict[tuple[int, int, str], list[float]] = {}
    work = [(d, n, function, kind) for d, n in SIZES for function, kind in KINDS]
    for d, n, function, kind in track(work, console=Console(stderr=True), description="measuring"):
        times: dict[str, list[float]] = {"paper": [], "default": [], "botorch": []}
        for seed in range(args.repeats):
            x, y = data(function, kind, d, n, seed)
            times["botorch"].append(seconds_of_botorch(x, y, seed))
            for method in ("paper", "default"):
                times[method].append(seconds_of_cylbo(method, x, y, seed))
        paper, default, botorch = (statistics.median(times[name]) for name in ("paper", "default", "botorch"))
        for name, ours in (("paper", paper), ("default", default)):
            ratios.setdefault((d, n, name), []).append(botorch / ours)
        cells = [d, n, f"{function}, {kind}", f"{botorch:.2f}", f"{paper:.2f}", f"{default:.2f}"]
        cells += [f"{botorch / paper:.1f}", f"{botorch / default:.1f}"]
        print(f"| {' | '.join(map(str, cells))} |", flush=True)
    print()
    for (d, n, name), some in ratios.items():
        print(f"- d = {d}, n = {n}: `{name}` is {statistics.geometric_mean(some):.1f} times faster (geometric mean)")


if __name__ == "__main__":
    main()
