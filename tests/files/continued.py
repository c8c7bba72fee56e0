"""How the run in `run-0.1.0.db` goes on: `run-0.1.0.json` was written by release 0.1.0 (commit c413b53) with

PYTHONPATH=src python tests/files/continued.py
"""

import json
import shutil
import tempfile
from pathlib import Path

import cylbo

HERE = Path(__file__).parent
SPACE = cylbo.Space(
    lr=cylbo.Real(1e-4, 1e-1, log=True),
    depth=cylbo.Integer(1, 9),
    act=cylbo.Categorical(["relu", "tanh", "gelu"]),
    w=cylbo.Real(-1, 1, shape=(2,)),
)


def value(p):
    return abs(p["depth"] - 4) + (p["act"] != "tanh") + float(((p["w"] - 0.2) ** 2).sum())


def continued(path):
    """The trials of the run after its open ones were told and eight more were asked and told."""
    with cylbo.Optimizer(SPACE, storage=path, resume=True) as opt:
        for trial in opt.trials:
            if trial.status == "open":
                opt.tell(trial, value(trial.params), constraints=[float(trial.params["w"][0]) - 0.5])
        for _ in range(8):
            trial = opt.ask()
            opt.tell(trial, value(trial.params), constraints=[float(trial.params["w"][0]) - 0.5])
        return opt.trials


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        path = shutil.copy(HERE / "run-0.1.0.db", folder)
        trials = [{"origin": trial.origin, "x": trial.x.tolist()} for trial in continued(path)]
    HERE.joinpath("run-0.1.0.json").write_text("[\n " + ",\n ".join(map(json.dumps, trials)) + "\n]\n")
