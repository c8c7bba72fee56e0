"""What BLAS threads cost while other processes keep the cores busy: why suggestions use one (src/cylbo/threads.py).

python benchmarks/contention.py
"""

import multiprocessing
import os
import time

import numpy as np
from scipy.linalg import blas, lapack

from cylbo.numerics.threads import blas_threads

SIZES = (50, 200, 600)


def spin() -> None:
    """Keep a core busy until killed."""
    while True:
        pass


def milliseconds(n: int, threads: int) -> float:
    """One Cholesky factor and one triangular solve of size n, the two steps of a likelihood; mean over a second."""
    a = np.random.default_rng(0).standard_normal((n, n))
    K = a @ a.T / n + np.eye(n)
    with blas_threads(threads):
        rounds, began = 0, time.perf_counter()
        while time.perf_counter() - began < 1.0:
            L, _ = lapack.dpotrf(K, lower=1, clean=0)
            blas.dtrsm(1.0, L, a, lower=1)
            rounds += 1
        return 1000.0 * (time.perf_counter() - began) / rounds


def main() -> None:
    """Print a Markdown table, first on an idle machine, then beside one busy process per core."""
    cores = os.cpu_count() or 1
    print(f"| n | busy processes | 1 BLAS thread, ms | {cores} BLAS threads, ms |")
    print("| --- | --- | --- | --- |")
    for busy in (0, cores):
        others = [multiprocessing.Process(target=spin, daemon=True) for _ in range(busy)]
        for other in others:
            other.start()
        for n in SIZES:
            print(f"| {n} | {busy} | {milliseconds(n, 1):.2f} | {milliseconds(n, cores):.2f} |", flush=True)
        for other in others:
            other.kill()


if __name__ == "__main__":
    main()
