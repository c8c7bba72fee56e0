"""Runs as data frames, CSV and JSON, and evaluations out of files of ours, of pandas and of people."""

import csv
import dataclasses
import io
import json
import math
import os
import stat
import struct
import sys
from dataclasses import replace

import numpy as np
import pandas
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import cylbo
from cylbo import Boolean, Categorical, Integer, Real, Space
from cylbo.record.trial import Trial

QUICK = {"n_sobol": 64, "n_spray": 20, "sweeps": 2, "first_sweeps": 3, "max_steps": 6, "fit_steps": 5, "warm_steps": 2}
CHEAP = dataclasses.replace(cylbo.DEFAULT, **QUICK, n_first_discrete=1)

MIXED = Space(
    lr=Real(1e-5, 1e-1, log=True),
    depth=Integer(1, 12),
    act=Categorical(["relu", "1", 1, None, False]),
    bias=Boolean(),
    w=Real(-1, 1, shape=(2, 2)),
)
POINTS = [
    [0.1 - 2e-17, 3.0, 0.0, 1.0, -0.0, 1e-300, 1 / 3, -1.0],
    [1e-5, 12.0, 3.0, 0.0, 0.25, 5e-324, 2 / 3, 1.0],
]
BOX = [(-1.0, 1.0), (0.0, 10.0)]
OURS = ["id", "status", "value", "std", "origin", "seconds", "reason", "metadata"]


def result_of(bounds, trials, direction="minimize"):
    """A run that consists of these trials."""
    box = bounds if isinstance(bounds, Space) else np.array(bounds)
    none = np.empty(0)
    return cylbo.Result(None, math.nan, 0, none, none, True, "made up", list(trials), bounds=box, direction=direction)


def trials_at(points, **fields):
    """Trials with the values 0, 1, ..."""
    return [Trial(i, np.array(x), **{"value": float(i), "status": "done"} | fields) for i, x in enumerate(points)]


def n_ours(run):
    """The number of columns before those of the parameters."""
    return len(OURS) + max((len(trial.constraints) for trial in run.trials), default=0)


def values(trials):
    return [trial.value for trial in trials if trial.status == "done"]


def points(trials):
    return np.array([trial.x for trial in trials])


def named(trials):
    """The points of evaluations that gave a value, by name."""
    return [trial.params for trial in trials if trial.status == "done"]


def cells(path):
    """What the standard library reads: the first row, and the others as dicts."""
    with open(path, newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file, strict=True)
        return reader.fieldnames, list(reader)


def strict(path):
    """JSON without the words that only Python knows."""

    def refuse(word):
        raise AssertionError(word)

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


def write(result, path):
    getattr(result, f"to_{path.suffix[1:]}")(path)
    return path


def bits(numbers):
    return [struct.pack("<d", number) for number in np.ravel(numbers)]


def same(params, others):
    """Whether values by name agree in type and bits."""
    return list(params) == list(others) and all(
        type(a) is type(b) and (a == b if isinstance(a, str | None | bool | int) else bits(a) == bits(b))
        for a, b in zip(params.values(), others.values(), strict=True)
    )


@pytest.fixture(params=["csv", "json"])
def path(request, tmp_path):
    return tmp_path / f"runs.{request.param}"


@pytest.fixture
def sheet(tmp_path):
    """Write a file by hand."""

    def written(text, name="hand.csv", encoding="utf-8"):
        (tmp_path / name).write_bytes(text.encode(encoding))
        return tmp_path / name

    return written


# ---- columns


def test_a_row_per_trial_and_a_column_per_scalar(tmp_path):
    trials = [
        Trial(0, np.array(POINTS[0]), 1.5, "done", "told"),
        Trial(1, np.array(POINTS[1]), -0.0, "done", "center", 0.25, std=1e-3, constraints=(-1.0, 2.0)),
        Trial(2, np.array(POINTS[0]), status="failed", seconds=0.5, reason="mesh, broken"),
        Trial(3, np.array(POINTS[1])),
    ]
    result_of(MIXED, trials).to_csv(tmp_path / "runs.csv")
    header, rows = cells(tmp_path / "runs.csv")
    assert ",".join(header[:10]) == "id,status,value,std,constraint[0],constraint[1],origin,seconds,reason,metadata"
    assert header[10:] == ["lr", "depth", "act", "bias", "w[0,0]", "w[0,1]", "w[1,0]", "w[1,1]"]
    assert ",".join(list(rows[1].values())[:10]) == "1,done,-0.0,0.001,-1.0,2.0,center,0.25,,"
    assert ",".join(list(rows[1].values())[10:]) == "1e-05,12,None,False,0.25,5e-324,0.6666666666666666,1.0"
    assert [row["value"] for row in rows] == ["1.5", "-0.0", "", ""]
    assert [row["std"] for row in rows] == ["", "0.001", "", ""]
    assert [row["constraint[0]"] for row in rows] == ["", "-1.0", "", ""]
    assert [row["reason"] for row in rows] == ["", "", "mesh, broken", ""]


def test_a_box_without_names_has_numbers(path):
    write(result_of(BOX, trials_at([[0.5, 3.0]])), path)
    names = cells(path)[0] if path.suffix == ".csv" else list(strict(path)["trials"][0])
    assert names == [*OURS, "x[0]", "x[1]"]


def test_json_says_what_was_searched_and_for_what(tmp_path):
    result_of(MIXED, trials_at(POINTS), "maximize").to_json(tmp_path / "named.json")
    named = strict(tmp_path / "named.json")
    assert Space.from_json(named["space"]) == MIXED
    assert (named["direction"], named["cylbo"]) == ("maximize", cylbo.__version__)
    act = Space(act=Categorical([1.5, "Infinity", math.inf, -math.inf, "-Infinity \\"]))
    result_of(act, trials_at([[i] for i in range(5)])).to_json(tmp_path / "infinite.json")
    infinite = strict(tmp_path / "infinite.json")
    assert Space.from_json(infinite["space"]) == act
    assert [row["act"] for row in infinite["trials"]] == [1.5, "Infinity", math.inf, -math.inf, "-Infinity \\"]
    result_of(BOX, [Trial(0, np.array([0.0, 1.0]))]).to_json(tmp_path / "box.json")
    box = strict(tmp_path / "box.json")
    assert box["space"] == {"low": [-1.0, 0.0], "high": [1.0, 10.0]}
    assert box["trials"] == [
        {"id": 0, "status": "open", "value": None, "std": None, "origin": "model", "seconds": 0.0, "reason": ""}
        | {"metadata": {}}
        | {"x[0]": 0.0, "x[1]": 1.0}
    ]


@pytest.mark.parametrize(
    ("names", "columns"),
    [
        ({"value": (), "id": (), "lr": ()}, ["param:value", "param:id", "lr"]),
        ({"value": 2}, ["value[0]", "value[1]"]),
        ({"constraint": 2}, ["param:constraint[0]", "param:constraint[1]"]),
        ({"constraint[0]": (), "constraint": ()}, ['param:"constraint[0]"', "constraint"]),
        ({"param:value": (), "value": ()}, ["param:param:value", "param:value"]),
        ({"w[0]": (), "w[1]": ()}, ["w[0]", "w[1]"]),
        ({"w": 2, "w[0]": ()}, ["param:w[0]", "param:w[1]", 'param:"w[0]"']),
        ({"=1+1": (), "@x": (), "-": ()}, ['param:"=1+1"', 'param:"@x"', 'param:"-"']),
        ({"": (), " a": (), "a\n": ()}, ["param:", 'param:" a"', 'param:"a\\n"']),
        ({"1": (), "true": ()}, ["1", "true"]),
    ],
)
def test_no_two_columns_have_one_name(path, names, columns):
    space = Space({name: Real(0, 1, shape=shape) for name, shape in names.items()})
    write(result_of(space, trials_at([np.linspace(0.1, 0.9, space.size)])), path)
    rows = cells(path)[1] if path.suffix == ".csv" else strict(path)["trials"]
    assert list(rows[0]) == [*OURS, *columns]
    assert [float(rows[0][column]) for column in columns] == np.linspace(0.1, 0.9, space.size).tolist()
    back = cylbo.earlier(path, space)
    assert bits(space.vector(back[0].params, "x0")) == bits(np.linspace(0.1, 0.9, space.size))


# ---- there and back

TEXT = st.text(max_size=6) | st.text("=+-@'\"[],;:\\ \t\r\n\0aé\ud800", max_size=4)
TRAPS = st.sampled_from(
    ["", " ", "1", "1.0", "True", "TRUE", "None", "none", "nan", "inf", "=1+1", "-2", '"', '"1"', "a,b", "a;b", "1,5"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT | TRAPS,
    lambda each: st.lists(each, max_size=2) | st.dictionaries(TEXT, each, max_size=2),
    max_leaves=4,
)
CHOICE = TEXT | TRAPS | st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False)
NAMES = TEXT | TRAPS | st.sampled_from([*OURS, "w", "w[0]", "w[1]", "constraint[0]", "param:w", "param:value"])


@st.composite
def spaces(draw):
    """One to four parameters of every kind, under any names."""
    ends = st.tuples(st.floats(-1e300, 1e300), st.floats(1e-3, 1e3)).map(
        lambda t: (t[0], t[0] + max(1.0, abs(t[0])) * t[1])
    )
    whole = st.tuples(st.integers(-(2**52), 2**52 - 1), st.integers(1, 2**52)).map(lambda t: (t[0], t[0] + t[1]))
    shapes = st.sampled_from([(), (), 1, 2, (2, 2), (1, 2, 1)])
    kinds = st.one_of(
        st.builds(lambda e, s: Real(*e, shape=s), ends, shapes),
        st.builds(lambda e, s: Integer(*e, shape=s), whole, shapes),
        st.lists(CHOICE, min_size=2, max_size=5, unique=True).map(Categorical),
        st.just(Boolean()),
    )
    return Space(draw(st.dictionaries(NAMES, kinds, min_size=1, max_size=4)))


@st.composite
def runs(draw):
    """Trials of every status at points of some space."""
    space = draw(spaces())

    def point():
        scalars = []
        for parameter in space.parameters.values():
            for _ in range(parameter.size):
                if isinstance(parameter, Categorical):
                    scalars.append(draw(st.integers(0, len(parameter.choices) - 1)))
                elif isinstance(parameter, Integer):
                    scalars.append(draw(st.integers(parameter.low, parameter.high)))
                else:
                    scalars.append(draw(st.floats(parameter.low, parameter.high)))
        return np.array(scalars, float)

    trials = []
    for i in range(draw(st.integers(0, 4))):
        status = draw(st.sampled_from(["done", "done", "failed", "open", "cancelled"]))
        told = {"status": status, "metadata": draw(st.dictionaries(TEXT, JSON, max_size=2))}
        if status == "done":
            finite = st.floats(allow_nan=False, allow_infinity=False)
            told |= {"value": draw(finite), "std": draw(st.just(math.nan) | st.floats(0.0, 1e300))}
        if status == "failed":
            told["reason"] = draw(TEXT | TRAPS)
        trials.append(Trial(i, point(), **told))
    m = draw(st.integers(0, 2))
    numbers = st.lists(st.floats(-1e300, 1e300), min_size=m, max_size=m).map(tuple)
    trials = [replace(trial, constraints=draw(numbers)) if trial.status == "done" else trial for trial in trials]
    return result_of(space, trials)


@given(runs())
@settings(max_examples=150)
@example(result_of(Space(act=Categorical(["TRUE", True])), trials_at([[0], [1]])))
@example(result_of(Space(act=Categorical(["1", '"1"', 1])), trials_at([[0], [1], [2]])))
@example(result_of(Space(act=Categorical([None, "", "None"])), trials_at([[0], [1], [2]])))
def test_what_was_evaluated_comes_back_bit_by_bit(tmp_path_factory, run):
    folder = tmp_path_factory.mktemp("any")
    done = [trial for trial in run.trials if trial.status == "done"]
    closed = [trial for trial in run.trials if trial.status in ("done", "failed")]
    for name in ("runs.csv", "runs.json"):
        back = cylbo.earlier(write(run, folder / name), run.bounds)
        assert [trial.status for trial in back] == [trial.status for trial in closed]
        assert [trial.metadata for trial in back] == [trial.metadata for trial in closed]
        assert [trial.constraints for trial in back] == [trial.constraints for trial in closed]
        assert bits([trial.std for trial in back]) == bits([trial.std for trial in closed])
        assert [trial.reason for trial in back] == [trial.reason for trial in closed]
        assert bits(values(back)) == bits([trial.value for trial in done])
        for params, trial in zip(named(back), done, strict=True):
            assert same(params, run.bounds.params(trial.x))
            assert len(run.bounds.vector(params, "x0")) == run.bounds.size


@given(runs())
def test_a_spreadsheet_finds_no_formula(tmp_path_factory, run):
    path = tmp_path_factory.mktemp("any") / "runs.csv"
    run.to_csv(path)
    with open(path, newline="", encoding="utf-8") as file:
        table = list(csv.reader(file, strict=True))
    assert len(table) == 1 + len(run.trials)
    for cell in (cell for line in table for cell in line):
        if cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n")):
            float(cell)  # numbers stay numbers


@given(runs())
def test_json_is_strict_and_has_the_types_of_the_space(tmp_path_factory, run):
    path = tmp_path_factory.mktemp("any") / "runs.json"
    run.to_json(path)
    rows = strict(path)["trials"]
    assert [row["status"] for row in rows] == [trial.status for trial in run.trials]
    assert [row["reason"] for row in rows] == [trial.reason for trial in run.trials]
    for row, trial in zip(rows, run.trials, strict=True):
        cells = list(row.values())[n_ours(run) :]
        values = [v for value in run.bounds.params(trial.x).values() for v in np.ravel(np.array(value, object))]
        assert [type(cell) for cell in cells] == [type(v) for v in values]
        assert cells == values


@given(runs())
def test_a_data_frame_has_the_types_of_the_space(run):
    frame = run.to_dataframe()
    assert len(frame) == len(run.trials)
    assert frame["value"].dtype == frame["std"].dtype == frame["seconds"].dtype == np.float64
    assert frame["id"].dtype == np.int64
    at = n_ours(run)
    for parameter in run.bounds.parameters.values():
        dtype = {Real: np.float64, Integer: np.int64, Boolean: np.bool_, Categorical: object}[type(parameter)]
        assert {frame.dtypes.iloc[k] for k in range(at, at + parameter.size)} == {np.dtype(dtype)}
        at += parameter.size
    assert at == frame.shape[1]
    for i, trial in enumerate(run.trials):
        row = [frame.iloc[i, k] for k in range(n_ours(run), frame.shape[1])]
        values = [v for value in run.bounds.params(trial.x).values() for v in np.ravel(np.array(value, object))]
        assert row == values
        assert [isinstance(cell, str) or cell is None for cell in row] == [isinstance(v, str | None) for v in values]


def test_a_box_comes_back_bit_by_bit(path):
    there = [[-0.0, 5e-324], [1 / 3, 0.1 + 0.2], [-1.0, 10.0]]
    back = cylbo.earlier(write(result_of(BOX, trials_at(there)), path), BOX)
    assert points(back).shape == (3, 2)
    assert bits(points(back)) == bits(there)
    assert values(back) == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("bounds", [BOX, MIXED], ids=["box", "space"])
def test_a_run_without_evaluations_gives_none(path, bounds):
    back = cylbo.earlier(write(result_of(bounds, []), path), bounds)
    assert back == []
    assert cylbo.Optimizer(bounds, seed=0, trials=back).ask().origin == "center"
    assert list(result_of(bounds, []).to_dataframe()["value"]) == []


def test_what_was_expensive_to_learn_comes_back_and_what_is_not_known_yet_does_not(path):
    trials = [
        Trial(0, np.array([0.1, 1.0]), 5.0, "done", "told"),
        Trial(1, np.array([0.2, 1.0]), status="failed", reason="mesh, folded", metadata={"host": "a", "cores": [1, 2]}),
        Trial(2, np.array([0.3, 1.0])),
        Trial(3, np.array([0.4, 1.0]), 3.0, "done", std=0.25, constraints=(-1.0, 1e-9)),
        Trial(4, np.array([0.5, 1.0]), 4.0, "done", constraints=(-1.0, 0.0), metadata={"accuracy": 0.5}),
        Trial(5, np.array([0.6, 1.0]), status="cancelled"),
    ]
    back = cylbo.earlier(write(result_of(BOX, trials), path), BOX)
    assert points(back)[:, 0].tolist() == [0.1, 0.2, 0.4, 0.5]
    assert [trial.status for trial in back] == ["done", "failed", "done", "done"]
    assert values(back) == [5.0, 3.0, 4.0]
    assert [trial.constraints for trial in back] == [(), (), (-1.0, 1e-9), (-1.0, 0.0)]
    assert [trial.std for trial in back if trial.std == trial.std] == [0.25]
    assert back[1].reason == "mesh, folded"
    assert [trial.metadata for trial in back] == [{}, {"host": "a", "cores": [1, 2]}, {}, {"accuracy": 0.5}]
    opt = cylbo.Optimizer(BOX, seed=0, method=CHEAP, trials=back)
    assert opt.best.value == 4.0  # the lower one breaks a constraint
    known = opt._known()
    assert len(known.failed) == 1
    assert known.constraints.shape == (3, 2)
    assert known.noise.tolist()[1] == 0.25


def test_metadata_that_json_does_not_know_is_null_in_json(tmp_path):
    run = result_of(BOX, trials_at([[0.5, 1.0]], metadata={"a": math.nan, "b": [math.inf, "NaN"], "c": "Infinity"}))
    run.to_json(tmp_path / "runs.json")
    assert strict(tmp_path / "runs.json")["trials"][0]["metadata"] == {
        "a": None,
        "b": [math.inf, "NaN"],
        "c": "Infinity",
    }
    run.to_csv(tmp_path / "runs.csv")
    assert cylbo.earlier(tmp_path / "runs.csv", BOX)[0].metadata["b"] == [math.inf, "NaN"]


@pytest.mark.parametrize(
    ("row", "kind"),
    [("0,1,nan,,", "failed"), ("0,1,inf,,", "failed"), ("0,1,5,failed,", "failed"), ("0,1,,failed,", "failed"),
     ("0,1,5,open,", "done"), ("0,1,5,converged,", "done"), ("0,1,5,,my notes", "done"),
     ("0,1,,open,", None), ("0,1,5,cancelled,", None), ("0,1,,,", None), ("0,1,,running,", None)],
)  # fmt: skip
def test_a_row_by_hand_is_an_evaluation_a_failure_or_nothing_yet(sheet, row, kind):
    back = cylbo.earlier(sheet(f"x[0],x[1],value,status,metadata\n{row}\n"), BOX)
    assert [trial.status for trial in back] == ([] if kind is None else [kind])
    assert all(trial.metadata in ({}, {"metadata": "my notes"}) for trial in back)


@pytest.mark.parametrize(
    ("header", "row", "message"),
    [("std", "-1", r"column std in row 2 .* must be at least 0"), ("std", "inf", "must be at least 0"),
     ("std", "x", r"column std in row 2 .* must be a number"),
     ("constraint[0],constraint[1]", "1,", r"row 2 of .* must have a number for every constraint or for none"),
     ("constraint[0]", "x", r"column constraint\[0\] in row 2 .* must be a number")],
)  # fmt: skip
def test_noise_and_constraints_that_are_none_get_a_clear_error(sheet, header, row, message):
    with pytest.raises(ValueError, match=message):
        cylbo.earlier(sheet(f"x[0],x[1],value,{header}\n0,1,5,{row}\n"), BOX)


def test_a_run_goes_on_from_a_file_as_from_arrays(path):
    def score(params):
        return params["depth"] + abs(params["w"]).sum() + (params["act"] is None)

    first = cylbo.minimize(score, MIXED, budget=4, seed=0, method=CHEAP)
    write(first, path)
    x0, y0 = [trial.params for trial in first.trials], [trial.value for trial in first.trials]
    by_hand = cylbo.Optimizer(MIXED, seed=1, method=CHEAP, x0=x0, y0=y0)
    from_file = cylbo.Optimizer(MIXED, seed=1, method=CHEAP, trials=cylbo.earlier(path, MIXED))
    assert from_file.best.value == first.fun
    assert bits(from_file.ask().x) == bits(by_hand.ask().x)


def test_a_stored_run_is_written_as_it_was_returned(path, tmp_path):
    def bowl(x):
        return float(x @ x) if isinstance(x, np.ndarray) else float(x["depth"])

    for i, bounds in enumerate((BOX, MIXED)):
        options = {"budget": 3, "seed": 0, "method": CHEAP, "direction": "maximize"}
        result = cylbo.minimize(bowl, bounds, storage=tmp_path / f"{i}.db", **options)
        text = write(result, path).read_bytes()
        assert write(cylbo.load(tmp_path / f"{i}.db"), path).read_bytes() == text
        assert result.direction == "maximize"
        assert result.bounds == MIXED if bounds is MIXED else result.bounds.tolist() == [list(b) for b in BOX]


def test_an_interrupted_run_can_be_written(tmp_path):
    with pytest.raises(ZeroDivisionError) as caught:
        cylbo.minimize(lambda x: 1 / 0, BOX, seed=0, method=CHEAP)
    assert caught.value.result.trials[0].status == "open"
    caught.value.result.to_csv(tmp_path / "runs.csv")
    assert [row["reason"] for row in cells(tmp_path / "runs.csv")[1]] == ["ZeroDivisionError: division by zero"]


def test_a_reason_longer_than_a_cell_is_cut_in_csv_alone(tmp_path):
    run = result_of(BOX, [Trial(0, np.zeros(2), status="failed", reason="\0" * 40_000), *trials_at([[0.0, 1.0]])])
    assert len(values(cylbo.earlier(write(run, tmp_path / "runs.csv"), BOX))) == 1
    assert max(len(row["reason"]) for row in cells(tmp_path / "runs.csv")[1]) == 32_767
    run.to_json(tmp_path / "runs.json")
    assert strict(tmp_path / "runs.json")["trials"][0]["reason"] == "\0" * 40_000


# ---- data frames


def test_pandas_own_csv_is_read(tmp_path):
    frame = result_of(MIXED, trials_at(POINTS)).to_dataframe()
    frame.to_csv(tmp_path / "frame.csv")  # with its index, None as nothing
    frame.to_json(tmp_path / "frame.json", orient="records", double_precision=15)
    for name in ("frame.csv", "frame.json"):
        back = cylbo.earlier(tmp_path / name, MIXED)
        assert [params["act"] for params in named(back)] == ["relu", None]
        assert [params["bias"] for params in named(back)] == [True, False]
    exact = cylbo.earlier(tmp_path / "frame.csv", MIXED)
    assert bits([MIXED.vector(params, "x0") for params in named(exact)]) == bits(POINTS)


def test_a_missing_pandas_names_its_cure(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'cylbo\[pandas\]'"):
        result_of(BOX, []).to_dataframe()


def test_none_and_numbers_are_not_mixed_up_by_pandas():
    frame = result_of(MIXED, trials_at([[1e-3, 1, i, 0, 0, 0, 0, 0] for i in range(5)])).to_dataframe()
    assert frame["act"].tolist() == ["relu", "1", 1, None, False]
    assert [type(cell) for cell in frame["act"]] == [str, str, int, type(None), bool]
    assert isinstance(frame, pandas.DataFrame)


# ---- files by hand

SMALL = Space(lr=Real(0, 1), depth=Integer(1, 12), act=Categorical(["relu", "gelu"]), bias=Boolean())
EXPECTED = [
    ({"lr": 0.5, "depth": 5, "act": "gelu", "bias": True}, 1.25),
    ({"lr": 1.0, "depth": 12, "act": "relu", "bias": False}, -3.0),
]

BY_HAND = {
    "commas": "lr,depth,act,bias,value\n0.5,5,gelu,True,1.25\n1,12,relu,False,-3\n",
    "spaces": 'value, bias, act, lr, depth\n1.25, True, "gelu", 0.5, 5\n -3 , False , relu , 1 , 12 \n',
    "semicolons": "\r\nlr;depth;act;bias;value\r\n0,5;5;gelu;WAHR;\r\n0,5;5;gelu;TRUE;1,25\r\n1;12;relu;FALSE;-3,0\r\n",
    "points": "lr;depth;act;bias;value\n0.5;5;gelu;true;1.25\n1.0;12.0;relu;false;-3e0\n",
    "tabs": "lr\tdepth\tact\tbias\tvalue\n0.5\t5\tgelu\tTRUE\t1.25\n1\t12\trelu\tFALSE\t-3\n",
    "mark": "\ufefflr,depth,act,bias,value\n0.5,5.0,gelu,True,1.25\n1,12,relu,False,-3\n",
    "blank lines": "\n,,,,\nlr,depth,act,bias,value\n\n0.5,5,gelu,True,1.25\n,,,,\n1,12,relu,False,-3,,\n",
    "more columns": 'date,lr,depth,act,bias,value,note\n1 May,0.5,5,gelu,True,1.25,"=x, y"\n,1,12,relu,False,-3\n',
    "no values": "lr,depth,act,bias,value\n9,9,9,9,\n0.5,5,gelu,True,1.25\n0,1,gelu,True,nan\n1,12,relu,False,-3\n",
    "objects": """[{"lr": 0.5, "depth": 5, "act": "gelu", "bias": true, "value": 1.25}, {"value": null}, {"lr": 7},
        {"value": -3, "lr": 1, "depth": 12.0, "act": "relu", "bias": false, "note": "x"}]""",
    "trials": """ {"trials": [{"lr": 0.5, "depth": 5, "act": "gelu", "bias": true, "value": 1.25},
        {"lr": 1, "depth": 12, "act": "relu", "bias": false, "value": -3.0, "status": "open"}]}""",
}


@pytest.mark.parametrize("text", BY_HAND.values(), ids=BY_HAND)
def test_a_file_by_hand_is_read(sheet, text):
    back = cylbo.earlier(str(sheet(text)), SMALL)
    assert values(back) == [value for _, value in EXPECTED]
    assert all(same(params, point) for params, (point, _) in zip(named(back), EXPECTED, strict=True))


def test_a_value_that_was_filled_in_later_counts(path):
    write(result_of(BOX, [Trial(0, np.array([0.5, 2.0]))]), path)
    text = path.read_text()
    filled = (
        text.replace("open,,", "open,7.5,") if path.suffix == ".csv" else text.replace('"value": null', '"value": 7.5')
    )
    path.write_text(filled)
    assert values(cylbo.earlier(path, BOX)) == [7.5]


@pytest.mark.parametrize(
    ("choices", "cell", "choice"),
    [
        ([1, "1"], "1", 1),
        ([1, "1"], "1.0", 1),
        ([1, "1"], '"""1"""', "1"),
        ([0.1, 0.2], "0.10", 0.1),
        ([1.0, 2.0], "1", 1.0),
        (["1", "2"], "1", "1"),
        (["007", "8"], "007", "007"),
        ([True, "yes"], "TRUE", True),
        (["TRUE", True], "TRUE", True),
        (["true", "no"], "true", "true"),
        ([None, "a"], "", None),
        ([None, "a"], "None", None),
        ([None, ""], "", ""),
        (["-", "+"], "+", "+"),
        (["None", None], '"""None"""', "None"),
        ([math.inf, 1], "inf", math.inf),
    ],
)
def test_a_cell_stands_for_a_choice_of_the_right_type(sheet, choices, cell, choice):
    space = Space(c=Categorical(choices), d=Real(0, 1))
    back = cylbo.earlier(sheet(f"c,d,value\n{cell},0,1\n"), space)[0].params["c"]
    assert (back, type(back)) == (choice, type(choice))


# ---- what is wrong with a file

BAD_CELLS = {
    "beyond": ("1.5,5,gelu,True,1", r"column lr in row 3 of .*hand.csv must lie within \(0.0, 1.0\), got 1.5. Correct"),
    "no number": ("fast,5,gelu,True,1", r"column lr in row 3 of .* must be one number, got 'fast'. Correct it"),
    "decimal comma": ('"0,5",5,gelu,True,1', r"column lr in row 3 of .* must be one number, got '0,5'"),
    "nothing": (",5,gelu,True,1", r"column lr in row 3 of .* must be one number, got ''"),
    "nan": ("nan,5,gelu,True,1", r"column lr in row 3 of .* must lie within .*got nan"),
    "not whole": ("0.5,5.5,gelu,True,1", r"column depth in row 3 of .* must be a whole number, got 5.5"),
    "true": ("True,5,gelu,True,1", r"column lr in row 3 of .* must be one number, got 'True'"),
    "category": ("0.5,5,tanh,True,1", r"column act in row 3 of .* must be one of 'relu', 'gelu'; got 'tanh'. Correct"),
    "no category": ("0.5,5,,True,1", r"column act in row 3 of .* must be one of 'relu', 'gelu'; got ''"),
    "boolean": ("0.5,5,gelu,1,1", r"column bias in row 3 of .* must be one of False, True; got '1'"),
    "value": ("0.5,5,gelu,True,#DIV/0!", r"column value in row 3 of .* must be a number, or empty for none; got '#DIV"),
    "long": ("0.5,5,gelu,True,1,2", r"row 3 of .*hand.csv must have 5 cells as its first row, got 6; put .* in quotes"),
}


@pytest.mark.parametrize(("row", "message"), BAD_CELLS.values(), ids=BAD_CELLS)
def test_a_bad_cell_is_named(sheet, row, message):
    with pytest.raises(ValueError, match=message):
        cylbo.earlier(sheet(f"lr,depth,act,bias,value\n0.5,5,gelu,True,1\n{row}\n"), SMALL)


def test_a_row_that_ends_early_is_named(sheet):
    with pytest.raises(ValueError, match=r"column bias in row 2 of .* must have a value, got none; add it, or remove"):
        cylbo.earlier(sheet("value,lr,depth,act,bias\n1,0.5,5,gelu\n"), SMALL)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ('"0.5"', "must be one number, got '0.5'"),
        ("true", "must be one number, got True"),
        ("null", "must be one number, got None"),
        ("[0.5]", r"must be one number, got \[0.5\]"),
        ("{}", "must be one number, got {}"),
        ("1e999", "must lie within"),
        ("1" + "0" * 400, "must be one number, got 1000"),
    ],
)
def test_a_bad_entry_of_json_is_named(sheet, cell, message):
    text = f'[{{"value": 1, "x[0]": 0, "x[1]": 0}}, {{"value": 2, "x[0]": {cell}, "x[1]": 0}}]'
    with pytest.raises(ValueError, match=rf"column x\[0\] in row 2 of .*hand.json {message}"):
        cylbo.earlier(sheet(text, "hand.json"), BOX)


@pytest.mark.parametrize("cell", ['"low"', "true", "[1]", "1" + "0" * 400])
def test_a_bad_value_of_json_is_named(sheet, cell):
    with pytest.raises(ValueError, match=r"column value in row 1 of .*hand.json must be a number, or empty for none"):
        cylbo.earlier(sheet(f'[{{"value": {cell}, "x[0]": 0, "x[1]": 0}}]', "hand.json"), BOX)


def test_an_entry_that_is_missing_in_one_object_is_named(sheet):
    text = '[{"value": 1, "x[0]": 0, "x[1]": 0}, {"value": 2, "x[0]": 0}]'
    with pytest.raises(ValueError, match=r"column x\[1\] in row 2 of .* must have a value, got none"):
        cylbo.earlier(sheet(text, "hand.json"), BOX)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"hand.csv must have the columns 'value', 'x\[0\]', 'x\[1\]'; missing 'value', .* found none. Rename"),
        ("x[0],x[1],loss\n0,0,1\n", r"missing 'value', found 'x\[0\]', 'x\[1\]', 'loss'"),
        ("x[0],value\n0,1\n", r"missing 'x\[1\]', found"),
        ("x[0],x[1],value,x[0]\n0,0,1,2\n", r"every column once, found 'x\[0\]' twice; remove or rename one"),
        (
            "x[0],x[1],x[2],value\n0,0,0,1\n",
            r"space with 'x\[0\]', 'x\[1\]', found 'x\[2\]' beyond them; give the space",
        ),
        ("[]]", r"hand.csv must be JSON from the first bracket to the last: Extra data"),
        ('{"x[0]": [0], "x[1]": [0], "value": [1]}', r"must hold a list of objects, one per evaluation.*\"x\[0\]\": "),
        ("[1, 2]", "must hold a list of objects"),
        ("[{}]", "missing 'value'"),
        ("x[0],x[1],value\n0," + "9" * 200_000 + ",1\n", "hand.csv must be a CSV: field larger than"),
    ],
)
def test_a_file_that_is_no_such_table_is_refused(sheet, text, message):
    with pytest.raises(ValueError, match=message):
        cylbo.earlier(sheet(text), BOX)


def test_long_lists_of_columns_are_cut(sheet):
    with pytest.raises(ValueError, match=r"missing 'x\[0\]', .*'x\[5\]' and 94 more, found 'value'. ") as caught:
        cylbo.earlier(sheet("value\n1\n"), [(0, 1)] * 100)
    assert len(str(caught.value)) < 500


def test_a_file_in_another_encoding_or_of_another_program_is_refused(sheet):
    for encoding in ("latin-1", "utf-16"):
        with pytest.raises(
            ValueError, match=r"hand.csv must be text in UTF-8; save it from the spreadsheet as CSV UTF-8"
        ):
            cylbo.earlier(sheet("x[0],x[1],value,naïve\n0,0,1,2\n", encoding=encoding), BOX)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere.csv"):
        cylbo.earlier(tmp_path / "nowhere.csv", BOX)


def test_bounds_that_are_none_are_refused(sheet):
    with pytest.raises(ValueError, match="bounds must have low < high"):
        cylbo.earlier(sheet("x[0],value\n0,1\n"), [(1, 0)])


def test_points_of_a_ball_need_wider_bounds(path):
    write(result_of(BOX, trials_at([[1.2, 5.0]])), path)
    with pytest.raises(ValueError, match=r"must lie within \(-1.0, 1.0\), got 1.2. .*give a space that it lies in"):
        cylbo.earlier(path, BOX)
    opt = cylbo.Optimizer(BOX, region="ball", trials=cylbo.earlier(path, [(-9, 9), (-9, 19)]))
    assert opt.trials[0].x.tolist() == [1.2, 5.0]


# ---- whole files or none


def test_a_file_is_replaced_as_a_whole_or_not_at_all(path, monkeypatch):
    path.write_text("what was there")
    run = result_of(BOX, trials_at([[0.0, 1.0]]))

    def full(*_args):
        raise OSError("disk is full")

    for step in ("fsync", "replace"):
        with monkeypatch.context() as broken:
            broken.setattr(os, step, full)
            with pytest.raises(OSError, match="disk is full"):
                write(run, path)
        assert path.read_text() == "what was there"
        assert os.listdir(path.parent) == [path.name]
    seen = []
    with monkeypatch.context() as watched:
        replace = os.replace
        watched.setattr(os, "replace", lambda a, b: (seen.append((a.parent, path.read_text())), replace(a, b)))
        write(run, path)
    assert seen == [(path.parent, "what was there")]
    assert os.listdir(path.parent) == [path.name]
    assert len(values(cylbo.earlier(path, BOX))) == 1


def test_a_file_keeps_its_permissions_and_a_link_stays_one(path):
    target = path.with_name("target")
    target.write_text("")
    target.chmod(0o604)
    path.symlink_to(target)
    write(result_of(BOX, trials_at([[0.0, 1.0]])), path)
    assert path.is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o604
    assert len(values(cylbo.earlier(target, BOX))) == 1


def test_a_new_file_has_the_permissions_of_any_other(path):
    (path.parent / "other").write_text("")
    write(result_of(BOX, []), path)
    assert path.stat().st_mode == (path.parent / "other").stat().st_mode


def test_a_place_that_is_none_is_refused(path):
    run = result_of(BOX, [])
    with pytest.raises(cylbo.StorageError, match=r"there is no folder .*nowhere to keep .* in; make it first"):
        write(run, path.parent / "nowhere" / path.name)
    path.mkdir()
    with pytest.raises(cylbo.StorageError, match="is a folder; choose the name of a file"):
        write(run, path)
    pipe = path.with_name(f"pipe{path.suffix}")
    os.mkfifo(pipe)
    with pytest.raises(cylbo.StorageError, match="is no plain file; choose another name"):
        write(run, pipe)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert sorted(os.listdir(path.parent)) == sorted([path.name, pipe.name])


def test_csv_is_what_the_standard_library_writes(tmp_path):
    result_of(BOX, trials_at([[0.0, 1.0]])).to_csv(tmp_path / "runs.csv")
    file = io.StringIO(newline="")
    csv.writer(file).writerows([[*OURS, "x[0]", "x[1]"], [0, "done", 0.0, "", "model", 0.0, "", "", 0.0, 1.0]])
    assert (tmp_path / "runs.csv").read_bytes() == file.getvalue().encode()
