"""Every method suggests the points that it suggested before; `golden.py` compares two commits to the last bit."""

import json

import numpy as np
import pytest

import golden

FIRST = json.loads(golden.FIRST.read_text())


def test_every_run_has_its_first_points_on_record():
    assert list(FIRST) == list(golden.RUNS)


@pytest.mark.parametrize("name", golden.RUNS)
def test_the_first_points_are_those_on_record(name):
    now, then = golden.first_points(name), FIRST[name]
    assert [point["origin"] for point in now] == [point["origin"] for point in then]
    # Processors differ in the last bits, which a fit and a climb make larger
    np.testing.assert_allclose([point["x"] for point in now], [point["x"] for point in then], rtol=1e-3, atol=1e-3)


def test_a_point_that_moves_is_noticed():
    record = {"runs": {"one": [{"x": ["0x1.0p+0"], "origin": "model"}] * 3}}
    moved = {"runs": {"one": [*record["runs"]["one"][:2], {"x": ["0x1.0000000000001p+0"], "origin": "model"}]}}
    assert golden.differences(record, record) == []
    assert golden.differences(record, moved) == ["one: trial 2 differs in x"]
    assert golden.differences(record, {"runs": {"one": record["runs"]["one"][:2]}}) == ["one: 3 trials before, 2 after"]
