"""Imports point one way: from the edge inwards, and never between siblings."""

import ast
from pathlib import Path

import pytest

import cylbo

ROOT = Path(cylbo.__file__).parent

# What each package may import, besides itself and what everybody may
BASE = {"errors", "types", "arguments", "rendering", "_version"}
ALLOWED = {
    "numerics": set(),
    "space": {"numerics"},
    "model": {"numerics"},
    "search": {"numerics", "space", "model"},
    "methods": {"numerics", "space", "model", "search"},
    "record": {"space"},
    "store": {"numerics", "space", "model", "search", "methods", "record"},
    "run": {"numerics", "space", "model", "search", "methods", "record", "store"},
}
# The edge may import anybody, and nobody imports it but for these: the package itself serves `cylbo.plot`, the command
# line holds the lab
EDGE = {"plot", "cli", "bench", "__main__"}
MOST_ROOMS, MOST_LINES = 16, 300
# Longer rooms, each with the reason
LONGER = {
    "run/optimizer.py": "the one class that users drive, half of it docstrings",
    "store/file.py": "one transaction and all that may go wrong with it, side by side",
}


def room(module):
    """The package that a module belongs to, or the module itself where it stands at the top."""
    return module.split(".")[1] if "." in module else ""


def imports(path):
    """Names of the modules of cylbo that a file imports, those for types alone included."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "cylbo")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "cylbo":
            if node.module == "cylbo":
                yield from (f"cylbo.{alias.name}" for alias in node.names)
            else:
                yield node.module


def files(package):
    single = ROOT / f"{package}.py"
    return [single] if single.exists() else sorted((ROOT / package).rglob("*.py"))


@pytest.mark.parametrize("package", ALLOWED)
def test_no_import_points_outwards_or_to_a_sibling(package):
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in files(package)
        for module in imports(path)
        if room(module) not in ALLOWED[package] | BASE | {package}
    ]
    assert wrong == []


def test_what_everybody_may_import_imports_nobody():
    wrong = [(name, module) for name in BASE for module in imports(ROOT / f"{name}.py") if room(module) not in BASE]
    # A type of theirs, to say what is shown
    assert wrong == [("rendering", "cylbo.record.trial")]


def test_nobody_imports_the_edge():
    inner = [path for package in ALLOWED for path in files(package)]
    assert [(path, module) for path in inner for module in imports(path) if room(module) in EDGE] == []


def test_every_module_has_its_place():
    known = {*ALLOWED, *BASE, *EDGE, "__init__"}
    assert {path.stem for path in ROOT.glob("*") if path.suffix == ".py" or (path / "__init__.py").exists()} <= known


def test_no_folder_is_full_and_no_room_too_long():
    rooms = [path for path in ROOT.rglob("*.py") if "bench" not in path.parts]
    for folder in {path.parent for path in rooms}:
        assert len([path for path in folder.glob("*.py") if path.stem != "__init__"]) <= MOST_ROOMS, folder
    long = {str(path.relative_to(ROOT)) for path in rooms if len(path.read_text().splitlines()) > MOST_LINES}
    assert long == set(LONGER)
