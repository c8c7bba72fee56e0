"""Golden runs: the exact points that every method suggests on small problems, to be compared between two commits.

    python tests/golden.py compare c413b53          # the working tree beside that commit, to the last bit
    python tests/golden.py compare c413b53 HEAD     # two commits
    python tests/golden.py record points.json       # the points of the working tree alone

Each run goes at least 20 evaluations beyond its last initial point. Over all of them every origin of a point and every
form of the default's model must occur, otherwise the script says which is missing. Bits differ between processors, so
both sides of a comparison are made on one machine; what is committed, `golden.json`, holds the first points of each
run, which `test_golden.py` compares with a tolerance (`python tests/golden.py first` writes it).

The runs use nothing but the public interface, so that this file can be run with an older or a newer `cylbo`.
"""

import argparse
import dataclasses
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import cylbo
from cylbo import Boolean, Categorical, Integer, Real, Space

HERE = Path(__file__).parent
FIRST = HERE / "golden.json"
N_FIRST = 5  # of the points of a run, those that the committed file holds: the first ones and a few suggestions
SHORT = 8  # evaluations that are made to see them

ORIGINS = {
    "center", "given", "told", "random", "model", "covering", "repeated", "last hyperparameters", "space-filling",
}  # fmt: skip
FORMS = {(False, False), (True, False), (True, True)}  # a lengthscale per coordinate, effects of single coordinates

BOX = [(-1.0, 2.0), (10.0, 30.0), (-5.0, -4.0), (0.0, 1.0), (-3.0, 3.0), (100.0, 200.0)]
MIXED = Space(
    lr=Real(1e-5, 1e-1, log=True),
    depth=Integer(1, 12),
    act=Categorical(["relu", "gelu", "tanh"]),
    bias=Boolean(default=True),
    w=Real(-1, 1, shape=(2, 2)),
)
FINITE = Space(a=Integer(0, 4), b=Categorical(["x", "y", "z"]), c=Boolean())  # 30 points


def unit(x):
    """A point of the box in [-1, 1]^d."""
    low, high = np.array(BOX).T
    return 2.0 * (np.asarray(x) - low) / (high - low) - 1.0


def bowl(x):
    return float(((unit(x) - 0.3) ** 2 * [1.0, 3.0, 0.3, 1.0, 0.1, 2.0]).sum())


def valley(x):
    z = 1.5 * unit(x)
    return float((100.0 * (z[1:] - z[:-1] ** 2) ** 2 + (1.0 - z[:-1]) ** 2).sum())


def additive(x):
    return float(np.cos(3.0 * unit(x) + np.arange(6.0)).sum())


def stretched(x):
    z = unit(x)
    return float(np.sin(4.0 * z[0] + 1.0) * np.cos(3.0 * z[1]) + (z[0] * z[1] - 0.2) ** 2)


def rugged(x):
    return float(np.sum(np.abs(np.sin(40.0 * unit(x) ** 2 + 1.0))) + np.sum(unit(x) ** 2) * 3.0)


def mixed(p):
    w = float((p["w"] ** 2).sum())
    return (math.log10(p["lr"]) + 3.0) ** 2 + 0.1 * (p["depth"] - 4) ** 2 + w + (p["act"] != "gelu") + 0.5 * p["bias"]


def finite(p):
    return float((p["a"] - 3) ** 2 + "zxy".index(p["b"]) + p["c"])


def noisy(fun, sd):
    """The same noise in every run: what it adds depends on how often the function was called."""
    rng = np.random.default_rng(12)
    return lambda x: fun(x) + sd * float(rng.standard_normal())


def fragile(x):
    z = unit(x)
    if z[0] + z[1] > 0.5:
        raise ZeroDivisionError("the mesh folded")
    return math.nan if z[4] < -0.8 else valley(x)


def limited(x):
    z = unit(x)
    return {"value": bowl(x), "constraints": [0.2 - z[2], float(z @ z) - 2.0], "std": 0.01}


def huge(x):
    z = unit(x)
    return math.exp(min(700.0, 300.0 + 400.0 * float(z @ z)))


# So few numbers lie between these bounds that points become equal by rounding
NARROW = [(1.0, 1.0 + 2e-9)]
# A prior without mass, so that there is nothing to sample
NO_SAMPLES = dataclasses.replace(
    cylbo.METHODS["cylinder"],
    name="no samples",
    priors=dataclasses.replace(cylbo.METHODS["cylinder"].priors, log_lengthscale2_low=10.0),
)


X0 = [
    [0.0, 11.0, -4.25, 0.1, 2.0, 180.0],
    [1.0 / 3.0, 12.0, -4.4, 0.9, 0.0, 120.0],
    [1.75, 29.0, -4.9, 0.5, -2.0, 150.0],
]


def loop(fun, bounds=BOX, *, budget, short, **options):
    """The trials of `cylbo.minimize`."""
    budget = min(budget, short)
    return cylbo.minimize(fun, bounds, budget=budget, seed=5, on_error="fail", **options).trials


def batches(fun, bounds=BOX, *, budget, short, n=4, **options):
    """Told in another order than asked, one of every batch as failed, and the last one left open."""
    opt = cylbo.Optimizer(bounds, seed=6, **options)
    for i in range(min(budget, short) // n):
        batch = opt.ask(n)
        for trial in reversed(batch[: 3 if i % 3 == 2 else 4]):
            if trial.id % 7 == 5:
                opt.fail(trial, "by rule")
            else:
                opt.tell(trial, fun(trial.x if trial.params is None else trial.params))
    return opt.trials


def resumed(fun, bounds=BOX, *, budget, short, **options):
    """One stored run in pieces of five evaluations."""
    with tempfile.TemporaryDirectory() as folder:
        for done in range(5, min(budget, short) + 1, 5):
            result = cylbo.minimize(
                fun, bounds, budget=done, seed=5, storage=Path(folder, "run.db"), resume=True, **options
            )
    return result.trials


RUNS = {
    **{
        f"box {method}": lambda short, method=method: loop(valley, budget=23, short=short, method=method)
        for method in cylbo.METHODS
    },
    "box default bowl": lambda short: loop(bowl, budget=30, short=short),
    "box default additive": lambda short: loop(additive, budget=45, short=short),
    "box default stretched": lambda short: loop(stretched, budget=45, short=short),
    "box default maximize": lambda short: loop(additive, budget=24, short=short, direction="maximize"),
    "box default rugged": lambda short: loop(rugged, budget=50, short=short),
    "ball default": lambda short: loop(bowl, budget=24, short=short, region="ball", center=[row[0] for row in BOX]),
    "given default": lambda short: loop(bowl, budget=25, short=short, x0=X0),
    "told default": lambda short: loop(valley, budget=24, short=short, x0=X0, y0=[30.0, 7.0, 1e6]),
    "mixed default": lambda short: loop(mixed, MIXED, budget=38, short=short),
    "mixed cylinder": lambda short: loop(mixed, MIXED, budget=22, short=short, method="cylinder"),
    "finite default": lambda short: loop(finite, FINITE, budget=40, short=short),
    "finite noisy": lambda short: loop(noisy(finite, 0.1), FINITE, budget=40, short=short, noisy=True),
    "failures default": lambda short: loop(fragile, budget=30, short=short),
    "failures cylinder": lambda short: loop(fragile, budget=24, short=short, method="cylinder"),
    "constraints default": lambda short: loop(limited, budget=26, short=short),
    "constraints matern": lambda short: loop(limited, budget=24, short=short, method="matern"),
    "noise default": lambda short: loop(noisy(bowl, 0.5), budget=45, short=short),
    "noise known": lambda short: loop(noisy(stretched, 0.3), budget=30, short=short, noisy=True),
    "batches default": lambda short: batches(valley, budget=36, short=short),
    "batches mixed": lambda short: batches(mixed, MIXED, budget=40, short=short),
    "batches paper": lambda short: batches(bowl, budget=28, short=short, method="paper"),
    "resume default": lambda short: resumed(valley, budget=25, short=short),
    "resume mixed": lambda short: resumed(mixed, MIXED, budget=40, short=short),
    "resume cylinder": lambda short: resumed(bowl, budget=25, short=short, method="cylinder"),
    "narrow default": lambda short: loop(
        lambda x: 1e18 * float((x - 1.0 - 7e-10) @ (x - 1.0 - 7e-10)), NARROW, budget=25, short=short
    ),
    "no samples": lambda short: loop(bowl, budget=23, short=short, method=NO_SAMPLES),
    "huge matern": lambda short: loop(huge, budget=23, short=short, method="matern"),
}


def form(memory):
    """Which form of the model was chosen, as a stored run says it; None where hyperparameters are sampled."""
    state = memory.state
    return (state.form.stretched, state.form.effects) if hasattr(state, "form") else None


class Watched:
    """Notes the forms of the model that optimizers choose, while it is entered."""

    def __enter__(self):
        self.forms, self._ask = set(), cylbo.Optimizer.ask

        def ask(optimizer, *arguments):
            asked = self._ask(optimizer, *arguments)
            self.forms.add(form(optimizer._memory))
            return asked

        cylbo.Optimizer.ask = ask
        return self

    def __exit__(self, *_):
        cylbo.Optimizer.ask = self._ask


def predicted_of(trial):
    """What the model predicted, in this release or in one that called it info."""
    said = trial.suggestion.to_json() if hasattr(trial, "suggestion") else trial.info
    return said.get("predicted", math.nan)


def made(name, short=10**9):
    """What a run is, to the last bit: points and how they came about, and what the model predicted of them."""
    return [
        {
            "x": [float(number).hex() for number in trial.x],
            "origin": str(trial.origin),
            "status": trial.status,
            "value": float(trial.value).hex(),
            "predicted": float(predicted_of(trial)).hex(),
        }
        for trial in RUNS[name](short)
    ]


def recorded(names):
    """All runs, and the origins and forms that occurred in them."""
    runs, forms = {}, set()
    began = time.perf_counter()
    for i, name in enumerate(names, 1):
        with Watched() as watched:
            runs[name] = made(name)
        forms |= watched.forms
        say(f"{i:2} of {len(names)}  {name:24} {len(runs[name]):3} points  {time.perf_counter() - began:6.1f} s")
    return {"runs": runs, "forms": sorted(filter(None, forms))}


def missing(record):
    """What should have occurred and did not."""
    origins = {trial["origin"] for run in record["runs"].values() for trial in run}
    return sorted(ORIGINS - origins) + [f"form {form}" for form in sorted(FORMS - set(map(tuple, record["forms"])))]


def differences(before, after):
    """Where two records differ: a line for each run, with its first trial that is not the same."""
    found = []
    for name, old in before["runs"].items():
        new = after["runs"].get(name, [])
        first = next((i for i, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), None)
        if first is not None:
            keys = [key for key in old[first] if old[first][key] != new[first][key]]
            found.append(f"{name}: trial {first} differs in {', '.join(keys)}")
        elif len(old) != len(new):
            found.append(f"{name}: {len(old)} trials before, {len(new)} after")
    return found


def recorded_at(commit, names):
    """The record that the sources of a commit make, in a process of their own; of None those of the working tree."""
    with tempfile.TemporaryDirectory() as folder:
        source = HERE.parent / "src"
        if commit is not None:
            archive = subprocess.run(
                ["git", "archive", commit, "src"], cwd=HERE.parent, check=True, stdout=subprocess.PIPE
            )
            subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
            source = Path(folder, "src")
        out = Path(folder, "record.json")
        say(f"{commit or 'working tree'}:")
        subprocess.run(
            [sys.executable, __file__, "record", str(out), "--runs", *names],
            env=os.environ | {"PYTHONPATH": str(source)},
            check=True,
        )
        return json.loads(out.read_text())


def first_points(name):
    """The first points of a run and how they came about, in decimals that people can compare."""
    trials = RUNS[name](SHORT)[:N_FIRST]
    return [{"origin": str(trial.origin), "x": [float(f"{number:.12g}") for number in trial.x]} for trial in trials]


def say(text):
    print(text, file=sys.stderr, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    record = commands.add_parser("record", help="write the points of every run to a file")
    record.add_argument("out", type=Path)
    compare = commands.add_parser("compare", help="compare two commits, or a commit and the working tree")
    compare.add_argument("before")
    compare.add_argument("after", nargs="?")
    commands.add_parser("first", help=f"write {FIRST.name}")
    for command in (record, compare):
        command.add_argument("--runs", nargs="+", choices=RUNS, default=list(RUNS), metavar="RUN")
    options = parser.parse_args()
    if options.command == "first":
        lines = [
            f" {json.dumps(name)}: [\n  " + ",\n  ".join(map(json.dumps, first_points(name))) + "\n ]" for name in RUNS
        ]
        FIRST.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        return 0
    if options.command == "record":
        found = recorded(options.runs)
        options.out.write_text(json.dumps(found))
        absent = missing(found) if list(options.runs) == list(RUNS) else []
        if absent:
            say(f"these never occurred: {', '.join(absent)}")
        return bool(absent)
    before, after = recorded_at(options.before, options.runs), recorded_at(options.after, options.runs)
    found = differences(before, after)
    print("\n".join(found) or f"{len(options.runs)} runs, {sum(map(len, before['runs'].values()))} trials: the same")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
