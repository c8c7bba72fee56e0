"""What `import cylbo` gives, and what it leaves alone."""

import ast
import pathlib
import subprocess
import sys
import types

import pytest

import cylbo


def printed(program):
    """What a new interpreter prints that runs the program without a warning."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.strip()


def isort_style(name):
    """RUF022's order: CONSTANTS, then Classes, then the rest."""
    constant = name.isupper() and len(name) > 1
    return (0 if constant else 1 if name[0].isupper() else 2, name)


def test_all_is_sorted_as_ruff_sorts_it():
    assert cylbo.__all__ == sorted(cylbo.__all__, key=isort_style)
    assert len(set(cylbo.__all__)) == len(cylbo.__all__)


def test_all_is_complete():
    public = {name for name, value in vars(cylbo).items() if name[0] != "_" and not isinstance(value, types.ModuleType)}
    # The module of pictures is imported when it is asked for
    assert set(cylbo.__all__) == public | {"__version__", "plot"}


def test_dir_shows_the_public_names_and_no_module_of_the_inside():
    assert {name for name in dir(cylbo) if name[0] != "_"} == set(cylbo.__all__) - {"__version__"}
    assert {"__doc__", "__file__", "__name__", "__version__"} <= set(dir(cylbo))


def test_plot_is_there_without_an_import_of_its_own():
    program = "import sys, cylbo; print('cylbo.plot' in sys.modules, callable(cylbo.plot.convergence))"
    assert printed(program) == "False True"


def test_a_star_import_gives_the_public_names():
    names: dict[str, object] = {}
    exec("from cylbo import *", names)
    assert set(names) - {"__builtins__"} == set(cylbo.__all__)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("maximize", r"cylbo\.minimize\(fun, bounds, direction='maximize'\)"),
        ("maximise", r"cylbo\.minimize\(fun, bounds, direction='maximize'\)"),
        ("optimise", r"cylbo\.minimize\(fun, bounds\)"),
        ("study", r"cylbo\.Optimizer\(bounds\)"),
        ("nothing", r"dir\(cylbo\)"),
    ],
)
def test_a_name_that_is_not_there_says_what_to_write_instead(name, instead):
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; .*{instead}"):
        getattr(cylbo, name)


def test_what_is_written_instead_exists():
    assert cylbo.minimize(lambda x: x[0], [(0, 1)], budget=2, seed=0, direction="maximize").nfev == 2
    assert cylbo.Optimizer([(0, 1)]).ask().origin == "center"


def test_python_proposes_the_public_name_that_is_nearest():
    program = "import cylbo; cylbo.minimze"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "Did you mean: 'minimize'?" in done.stderr


@pytest.mark.parametrize(
    "name", ["minimize", "load", "earlier", "Optimizer", "Trial", "Result", "Method", "PAPER", "DEFAULT", "METHODS"]
)
def test_the_names_of_the_interface_are_public(name):
    assert name in cylbo.__all__
    assert hasattr(cylbo, name)


def test_every_error_class_is_public_and_a_cylbo_error():
    for name in cylbo.errors.__all__:
        assert name in cylbo.__all__
        assert issubclass(getattr(cylbo, name), cylbo.CylboError)


def test_errors_can_be_caught_as_the_builtin_they_resemble():
    assert issubclass(cylbo.UnknownTrialError, KeyError)
    assert issubclass(cylbo.TrialClosedError, ValueError)
    assert issubclass(cylbo.StorageError, OSError)
    assert issubclass(cylbo.SamplingError, ArithmeticError)
    assert issubclass(cylbo.NotPositiveDefiniteError, ArithmeticError)


def test_import_pulls_in_nothing_that_a_script_may_never_use():
    heavy = (
        "scipy.stats", "rich", "typer", "matplotlib", "pandas", "torch", "gpytorch", "botorch", "sklearn",
        "cylbo.bench", "cylbo.cli", "cylbo.plot",
    )  # fmt: skip
    assert printed(f"import sys, cylbo; print([m for m in {heavy!r} if m in sys.modules])") == "[]"


def test_the_default_method_never_needs_scipy_stats():
    program = """
import sys, cylbo
cylbo.minimize(lambda x: float(x @ x), [(-1, 2)] * 3, budget=12, seed=0)
print('scipy.stats' in sys.modules)
"""
    assert printed(program) == "False"


def test_the_version_is_that_of_the_distribution():
    from importlib.metadata import version

    assert cylbo.__version__ == version("cylbo")


def test_a_whole_suggestion_needs_no_torch():
    """With torch out of reach, so that not even a late import could go unnoticed."""
    program = """
import sys

class Closed:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ImportError("torch is out of reach")

sys.meta_path.insert(0, Closed())
import dataclasses, cylbo
for config in cylbo.METHODS.values():
    method = dataclasses.replace(config, n_sobol=64, sweeps=1, first_sweeps=1, max_steps=2)
    result = cylbo.minimize(lambda x: float(x @ x), [(-1, 2)] * 3, budget=4, seed=0, method=method)
    print([trial.origin for trial in result.trials][2:])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "['model', 'model']\n" * len(cylbo.METHODS)
    assert done.stderr == ""


def test_no_module_but_the_peers_of_the_lab_imports_torch():
    root = pathlib.Path(cylbo.__file__).parent
    for path in root.rglob("*.py"):
        if path.parent == root / "bench" / "methods":  # lazily; see the next test
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(name.split(".")[0] == "torch" for name in names), path


def test_the_lab_imports_its_peers_only_to_run_them():
    heavy = ("torch", "botorch", "gpytorch", "smac", "hyperopt", "optuna", "cma", "cocoex", "jax", "matplotlib")
    program = f"import sys, cylbo.cli, cylbo.bench.worker; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_former_names_say_what_they_are_called_now():
    with pytest.raises(AttributeError, match=r"has no attribute 'Config'; write cylbo\.Method"):
        cylbo.Config  # noqa: B018
    with pytest.raises(AttributeError, match=r"Optimizer\.config is called Optimizer\.method since 0\.2"):
        cylbo.Optimizer([(0, 1)]).config  # noqa: B018
