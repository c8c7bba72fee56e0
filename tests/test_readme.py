"""What README and the documentation show can be typed in and works, and what they link to is there."""

import logging
import re
from pathlib import Path

import pytest

import cylbo

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
START = ROOT / "docs" / "start.md"
METHOD = ROOT / "docs" / "method.md"
NOTEBOOK = sorted((ROOT / "docs" / "notebook").glob("*.md"))
# The pages of docs/results are written by programs, which have tests of their own
PAGES = [README, *sorted((ROOT / "docs").glob("*.md")), *NOTEBOOK]

MOST_LINES, MOST_WORDS = 130, 1300
LARGEST_PICTURE = 100_000
COLUMNS = "| id | after | question | changed | problems, seeds | result | verdict | record |"


def _blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)


def _anchors(page: Path) -> set[str]:
    """The names that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _experiments(page: Path) -> list[tuple[str, str]]:
    """The id of every experiment of a page, and what its column `after` says."""
    return re.findall(r"^\| ([A-Z]\d+) \|([^|]*)\|", page.read_text(), re.MULTILINE)


def test_readme_is_short():
    text = README.read_text()
    assert len(text.splitlines()) <= MOST_LINES
    assert len(text.split()) <= MOST_WORDS


@pytest.mark.parametrize("page", [README, START], ids=lambda page: page.stem)
def test_there_are_examples(page):
    assert len(_blocks(page)) >= 5


@pytest.mark.parametrize("block", _blocks(README) + _blocks(START))
def test_every_example_runs_alone_and_beats_the_point_where_it_begins(block, capsys, tmp_path, monkeypatch):
    """An optimum where the search begins would make every search look good."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    # What an example sets up for the log ends with it
    monkeypatch.setattr(logging.root, "handlers", [])
    monkeypatch.setattr(logging.root, "level", logging.WARNING)
    namespace: dict[str, object] = {}
    exec(re.sub(r"budget=\d+", "budget=30", block), namespace)
    assert capsys.readouterr().out
    result = namespace.get("result")
    if isinstance(result, cylbo.Result):
        begin = next(trial for trial in result.trials if trial.origin == "center")
        assert result.fun < begin.value


def test_every_method_is_described():
    text = README.read_text()
    assert all(f'`"{name}"`' in text for name in cylbo.METHODS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_and_heading_linked_to_exists(page):
    for target, anchor in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", page.read_text()):
        if "://" in target:
            continue
        linked = page.parent / target if target else page
        assert linked.exists(), target
        assert not anchor or linked.suffix != ".md" or anchor in _anchors(linked), anchor


def test_every_module_that_the_method_names_exists():
    named = set(re.findall(r"`(\w+\.py)`", METHOD.read_text()))
    assert named
    assert named - {path.name for path in (ROOT / "src" / "cylbo").rglob("*.py")} == set()


def test_experiments_have_one_row_each_and_follow_from_experiments():
    rows = [row for page in NOTEBOOK for row in _experiments(page)]
    ids = [name for name, _ in rows]
    assert rows
    assert len(set(ids)) == len(ids)
    pages = "".join(page.read_text() for page in [*NOTEBOOK, METHOD])
    cited = set(re.findall(r"\b([MSDRNFCB]\d+)\b", pages))
    assert cited - set(ids) == set()


def test_tables_of_experiments_have_the_same_columns():
    for page in NOTEBOOK:
        heads = re.findall(r"^\| id \|.*$", page.read_text(), re.MULTILINE)
        assert set(heads) <= {COLUMNS}


def test_pictures_are_small():
    pictures = sorted((ROOT / "docs" / "pictures").glob("*.svg"))
    assert pictures
    assert [path.name for path in pictures if path.stat().st_size > LARGEST_PICTURE] == []
