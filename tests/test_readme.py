"""What README shows can be typed in and works."""

import logging
import re
from pathlib import Path

import pytest

import cylbo

README = (Path(__file__).parents[1] / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_there_are_examples():
    assert len(BLOCKS) == 7


@pytest.mark.parametrize("block", BLOCKS)
def test_the_examples_run(block, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(logging.root, "handlers", [])  # what the example sets up ends with it
    monkeypatch.setattr(logging.root, "level", logging.WARNING)
    exec(block.replace("budget=100", "budget=5"), {"cylbo": cylbo})
    assert capsys.readouterr().out


def test_every_method_is_described():
    assert all(f'`"{name}"`' in README for name in cylbo.METHODS)


def test_every_file_linked_to_exists():
    targets = re.findall(r"\]\(([^)#]+)\)", README)
    root = Path(__file__).parents[1]
    assert targets
    assert [t for t in targets if "://" not in t and not (root / t).exists()] == []
