"""The command line as a person meets it."""

import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import cylbo
from cylbo.cli import app
from cylbo.record.trial import Trial
from cylbo.run.result import Result


@pytest.fixture
def run():
    return lambda *arguments: CliRunner().invoke(app, list(arguments))


def test_version_is_that_of_the_package(run):
    outcome = run("--version")
    assert outcome.exit_code == 0
    assert outcome.output.strip() == f"cylbo {cylbo.__version__}"


def test_demo_shows_the_result_and_saves_a_picture(run, tmp_path):
    picture = tmp_path / "demo.png"
    outcome = run("demo", "--budget", "4", "--plot", str(picture), "--method", "matern")
    assert outcome.exit_code == 0, outcome.output
    assert "Best value" in outcome.output
    assert "8608.36" in outcome.output  # the centre, as in the paper's table
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_an_unknown_method_is_refused_with_the_known_ones(run):
    outcome = run("demo", "--method", "magic")
    assert outcome.exit_code == 2
    assert all(name in outcome.output for name in cylbo.METHODS)


def test_a_missing_folder_is_refused_before_anything_is_evaluated(run, tmp_path, monkeypatch):
    monkeypatch.setattr(cylbo, "minimize", lambda *_args, **_kwargs: pytest.fail("it began to evaluate"))
    outcome = run("demo", "--plot", str(tmp_path / "nowhere" / "demo.png"))
    assert outcome.exit_code == 2
    assert "--plot" in outcome.output


def test_ctrl_c_keeps_what_was_evaluated(run, tmp_path, monkeypatch):
    def interrupted(*_args, **_kwargs):
        stop = KeyboardInterrupt()
        values, box = np.array([9.0, 5.0, 7.0]), np.array([(-1.0, 1.0)] * 20)
        trials = [Trial(i, np.zeros(20), value=value, status="done") for i, value in enumerate(values)]
        stop.result = Result(
            np.zeros(20), 5.0, 3, np.zeros((3, 20)), values, False, "stopped", trials, bounds=box, direction="minimize"
        )
        raise stop

    monkeypatch.setattr(cylbo, "minimize", interrupted)
    picture = tmp_path / "demo.png"
    outcome = run("demo", "--plot", str(picture))
    assert "Stopped after 3 evaluations" in outcome.output
    assert picture.exists()


@pytest.mark.parametrize(
    "out_of_reach",
    [
        "sys.modules['matplotlib'] = None",
        """
class Closed:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "matplotlib":
            raise ImportError("matplotlib is out of reach")

sys.meta_path.insert(0, Closed())
""",
    ],
)
def test_without_matplotlib_demo_says_so_first_and_makes_its_evaluations(out_of_reach, tmp_path):
    arguments = ["demo", "--budget", "2", "--method", "matern", "--plot", str(tmp_path / "demo.png")]
    program = f"import sys\n{out_of_reach}\nfrom cylbo.cli import app\napp({arguments!r})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    (cure,) = [line for line in lines if "pip install 'cylbo[plot]'" in line]
    (best,) = [line for line in lines if line.startswith("Best value")]
    assert lines.index(cure) < lines.index(best)
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "demo.png").exists()


def test_the_demo_writes_its_progress_to_the_error_stream(run, tmp_path):
    outcome = run("demo", "--budget", "2", "--method", "matern", "--plot", str(tmp_path / "demo.png"))
    assert "2/2" in outcome.stderr
    assert "2/2" not in outcome.stdout
