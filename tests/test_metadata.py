"""What a user keeps with a trial: any JSON values, which come back as they were and cannot be changed."""

import copy
import math
import pathlib
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cylbo
from cylbo.record.metadata import checked_metadata
from test_storage import BOX, CHEAP, bits, bowl, make, run

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda each: st.lists(each) | st.dictionaries(st.text(), each),
    max_leaves=8,
)
DEEP = {}
DEEP["self"] = [DEEP]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.db"


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_json_comes_back_as_it_was(metadata):
    copied = checked_metadata(metadata)
    assert repr(copied) == repr(metadata)
    assert copied is not metadata


def test_numpy_becomes_plain_python():
    given = {"a": np.float32(0.5), "b": np.arange(3), "c": [np.int64(2), np.True_], "d": (1, 2), "e": np.array(1.5)}
    assert checked_metadata(given) == {"a": 0.5, "b": [0, 1, 2], "c": [2, True], "d": [1, 2], "e": 1.5}


@pytest.mark.parametrize(
    ("metadata", "error", "message"),
    [
        ("a", TypeError, "metadata must be a dict of JSON values by name, got 'a'"),
        ([1], TypeError, "metadata must be a dict"),
        (
            {"a": {"b": [1, {2}]}},
            TypeError,
            r"metadata\['a'\]\['b'\]\[1\] must be a JSON value .*, got \{2\}; keep",
        ),
        ({"path": pathlib.Path("x")}, TypeError, r"metadata\['path'\] must be a JSON value .*keep str\(...\) of it"),
        ({1: 2}, TypeError, "metadata must have strings as names, got 1"),
        ({"a": {None: 2}}, TypeError, r"metadata\['a'\] must have strings as names, got None"),
        ({"a": 1j}, TypeError, "must be a JSON value"),
        ({"a": 10**5000}, ValueError, r"metadata\['a'\] must be an integer of at most 4300 digits"),
        (DEEP, ValueError, "must not be nested deeper than 50 levels; does it contain itself"),
    ],
)
def test_what_is_no_json_is_refused_and_changes_nothing(path, metadata, error, message):
    with make(path) as opt:
        trial = opt.ask()
        calls = [lambda: opt.tell(trial, 1.0, metadata=metadata), lambda: opt.fail(trial, metadata=metadata)]
        for call in calls:
            with pytest.raises(error, match=message):
                call()
        assert [t.id for t in opt.pending] == [0]
        assert cylbo.load(path).trials[0].status == "open"


def test_metadata_is_stored_exported_and_shown(path, tmp_path):
    kept = {"accuracy": 0.75, "host": "node <7>", "folds": [0.5, math.inf]}

    def fun(x):
        return {"value": bowl(x), "metadata": kept}

    result = run(fun, budget=3, storage=path)
    for trials in (result.trials, cylbo.load(path).trials):
        assert [trial.metadata for trial in trials] == [kept] * 3
    result.to_csv(tmp_path / "runs.csv")
    result.to_json(tmp_path / "runs.json")
    for name in ("runs.csv", "runs.json"):
        assert [trial.metadata for trial in cylbo.earlier(tmp_path / name, BOX)] == [kept] * 3
    assert result.to_dataframe()["metadata"].str.contains("node <7>").all()
    assert "accuracy" in repr(result.trials[0])
    assert "node &lt;7&gt;" in result.trials[0]._repr_html_()


def test_metadata_of_a_value_that_is_not_finite_is_kept():
    result = run(lambda x: {"value": math.nan, "metadata": {"iterations": 7}}, budget=1)
    assert (result.trials[0].status, result.trials[0].metadata) == ("failed", {"iterations": 7})


def test_metadata_does_not_touch_the_search(path):
    assert bits(run(lambda x: {"value": bowl(x), "metadata": {"a": [1]}}, storage=path).trials) == bits(run().trials)


def test_what_was_kept_cannot_be_changed():
    given = {"a": [1, {"b": 2}]}
    opt = cylbo.Optimizer(BOX, seed=0, method=CHEAP)
    trial = opt.tell(opt.ask(), 1.0, metadata=given)
    given["a"].append(3)
    changes = [
        lambda m: m.update(c=1), lambda m: m["a"].append(3), lambda m: m["a"][1].clear(), lambda m: m["a"].sort(),
        lambda m: m.pop("a"), lambda m: m["a"].__setitem__(0, 5), lambda m: m["a"].__iadd__([1]),
    ]  # fmt: skip
    for twin in (trial, copy.deepcopy(trial), pickle.loads(pickle.dumps(trial))):
        for change in changes:
            with pytest.raises(TypeError, match="cannot be changed"):
                change(twin.metadata)
        assert twin.metadata == {"a": [1, {"b": 2}]}


def test_a_told_trial_is_a_new_snapshot():
    opt = cylbo.Optimizer(BOX, seed=0, method=CHEAP)
    asked = opt.ask()
    told = opt.tell(asked, 1.0, metadata={"a": 1})
    assert (asked.status, asked.metadata) == ("open", {})
    assert opt.trials[asked.id] is told
