"""Small SVG: the same picture, to within half a point."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cylbo.bench import figures
from cylbo.bench.svg import TOLERANCE, _kept, _path

corners = st.lists(st.tuples(st.floats(-500, 500), st.floats(-500, 500)), min_size=2, max_size=30)


@given(st.lists(st.floats(-50, 50), min_size=2, max_size=40))
def test_a_line_stays_within_the_tolerance(heights):
    line = np.stack([np.arange(len(heights), dtype=float), np.array(heights)], -1)
    kept = _kept(line)
    assert (kept[0], kept[-1]) == (0, len(line) - 1)
    for first, last in pairwise(kept):
        x, y = line[last] - line[first]
        for point in line[first : last + 1] - line[first]:
            # The distance of a point from a line is the cross product over the length
            assert abs(point[0] * y - point[1] * x) / np.hypot(x, y) <= TOLERANCE + 1e-9


def test_a_straight_line_keeps_its_ends_alone():
    assert _path("M 0 0 L 1.01 1.01 L 2 2 L 3 3 z") == "M0 0l3 3z"


@given(corners)
def test_a_path_in_steps_ends_where_it_did(points):
    commands = " ".join(f"{'L' if i else 'M'} {x:.6f} {y:.6f}" for i, (x, y) in enumerate(points))
    moves = np.array(re.findall(r"-?(?:\d+(?:\.\d)?|\.\d)", _path(commands)), dtype=float).reshape(-1, 2)
    np.testing.assert_allclose(moves.sum(0), points[-1], atol=0.0501)
    np.testing.assert_allclose(moves[0], points[0], atol=0.0501)


def test_a_path_with_curves_keeps_its_commands():
    assert _path("M 1.2345 2 C 3 4 5.06 6 7 8 z") == "M1.2 2C3 4 5.1 6 7 8z"


@pytest.fixture
def drawn(tmp_path):
    pytest.importorskip("matplotlib")
    curves = {m: [np.array([9.0, 3.0, 2.0])] * 2 for m in ("default", "sobol")}
    figure = figures.convergence({"levy": curves, "a < b": curves}, at=[1, 2, 3], title="words", above_minimum=[])
    figures.save(figure, tmp_path / "picture.svg")
    return ElementTree.parse(tmp_path / "picture.svg").getroot()


def test_words_are_words_and_every_reference_finds_its_place(drawn):
    assert {"words", "levy", "a < b", "cylbo", "Sobol"} <= {
        text.text for text in drawn.iter() if text.tag.endswith("text")
    }
    names = [element.get("id") for element in drawn.iter() if "id" in element.attrib]
    assert len(set(names)) == len(names)
    whole = ElementTree.tostring(drawn, encoding="unicode")
    assert set(re.findall(r"#(i\d+)", whole)) == set(names)


def test_every_class_has_a_style(drawn):
    (sheet,) = [element.text for element in drawn.iter() if element.tag.endswith("style")]
    classes = {element.get("class") for element in drawn.iter() if "class" in element.attrib}
    assert classes <= set(re.findall(r"\.(s\d+)\{", sheet))
    assert not any("style" in element.attrib for element in drawn.iter())
