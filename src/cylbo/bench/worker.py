"""One run in a process of its own: `python -m cylbo.bench.worker '["levy", 20, 200, "paper", 0]'`.

Writes JSON lines: first {"environment": ...}, then [value, seconds] per evaluation, {"recommended": [n, value]} where
the problem is noisy, last {"error": ...}, empty when all went well. The process ends when its standard input is closed,
so it never outlives the runner that started it, however that died.
"""

import contextlib
import importlib.metadata
import json
import os
import platform
import sys
import threading
import traceback
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

import cylbo
from cylbo.bench.methods import Method, method
from cylbo.bench.objective import Objective
from cylbo.bench.problems import packages, task
from cylbo.bench.store import Key

__all__ = ["environment", "main"]

ALWAYS_NAMED = ("cylbo", "numpy", "scipy")


def environment(used: Method, also: Iterable[str] = ()) -> dict[str, Any]:
    """Versions and machine, as kept with every run; `also` are packages of the problem."""
    of_method = (pip.partition("[")[0] for _, pip in used.packages)  # without extras
    names = dict.fromkeys([*ALWAYS_NAMED, *of_method, *also])
    return {
        "versions": {name: _version(name) for name in names},
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}, {_processor()}",
        "cores": os.cpu_count(),
        "threads": int(os.environ.get("OMP_NUM_THREADS", "0")) or os.cpu_count(),
    }


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:  # ourselves, run from a source tree
        return cylbo.__version__ if name == "cylbo" else "unknown"


def _processor() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown processor"


def _end_with_standard_input() -> None:
    os.read(0, 1)  # the bare descriptor: a thread inside sys.stdin holds a lock that the interpreter needs at its end
    os._exit(1)


@contextlib.contextmanager
def _private_output() -> Iterator[TextIO]:
    """The standard output for ourselves: whatever a library prints goes to standard error."""
    ours = os.dup(1)
    os.dup2(2, 1)
    with os.fdopen(ours, "w", buffering=1) as output:
        yield output


def main(argument: str) -> None:
    """Make the run that the argument names."""
    key = Key(*json.loads(argument))
    threading.Thread(target=_end_with_standard_input, daemon=True).start()
    with _private_output() as output:

        def observe(_: object, value: float, seconds: float) -> None:
            output.write(json.dumps([value, seconds]) + "\n")

        def observe_best(evaluations: int, value: float) -> None:
            output.write(json.dumps({"recommended": [evaluations, value]}) + "\n")

        used, error = method(key.method), ""
        output.write(json.dumps({"environment": environment(used, packages(key.problem))}) + "\n")
        try:
            problem = task(key.problem, key.dim, key.seed)
            objective = Objective(problem, key.dim, key.budget, observe, batch=key.batch, observe_best=observe_best)
            used.spend(objective, key.seed)
        except Exception:
            error = traceback.format_exc()
        output.write(json.dumps({"error": error}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
