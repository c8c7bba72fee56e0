"""Results: what people see of them, and what they say where there is no best point."""

import copy
import dataclasses
import math
import pickle
import typing

import numpy as np
import pytest
from rich.cells import cell_len

import cylbo
from cylbo import Boolean, Categorical, Integer, Real, Result, Space, Trial
from test_rendering import EVIL, INVISIBLE, rows_of

MIXED = Space(lr=Real(1e-5, 0.1, log=True), act=Categorical(["relu", "gelu"]), w=Real(-1, 1, shape=(10, 10)))


def result(bounds, statuses=("done",), message="used the budget", direction="minimize", **fields):
    """A run whose first trial is the best, if it is done."""
    is_named = isinstance(bounds, Space)
    x = bounds.middle if is_named else np.linspace(-1 / 3, 1.0, len(bounds))
    to_params = bounds.params if is_named else None
    values = [float(i) if status == "done" else math.nan for i, status in enumerate(statuses)]
    trials = [
        Trial(i, x, value, status, to_params=to_params, **fields)
        for i, (value, status) in enumerate(zip(values, statuses, strict=True))
    ]
    found = next((trial for trial in trials if trial.feasible), None)
    best = (None, None) if found is None else (found.x.copy(), found.params)
    n, fun = len(trials), math.nan if found is None else found.value
    points = np.array([x] * n).reshape(n, len(x))
    where = bounds if is_named else np.array(bounds, float)
    return Result(
        best[0], fun, n, points, np.array(values), found is not None, message, trials, best[1], bounds=where,
        direction=direction,
    )  # fmt: skip


def box(d):
    return [(-1.0, 1.0)] * d


# ---- in a terminal


@pytest.mark.parametrize("d", [1, 6, 7, 20, 1000])
def test_a_result_has_a_line_for_each_of_six_parameters_and_one_for_the_others(d):
    shown = result(box(d))
    lines = repr(shown).split("\n")
    assert len(lines) == 3 + min(d, 6) + (d > 6)
    assert len(lines) <= 15
    assert lines[:3] == ["message      used the budget", "fun          0", "evaluations  1"]
    assert lines[3].split() == ["x", "x[0]", f"{shown.x[0]:.6g}"]
    if d > 6:
        assert lines[-1].split(maxsplit=1) == ["...", f"and {d - 6} more: result.x"]


def test_a_result_shows_values_by_name_and_arrays_by_shape_and_range():
    lines = repr(result(MIXED, direction="maximize")).split("\n")
    assert [line.split(maxsplit=1) for line in lines[3:5]] == [
        ["direction", "maximize"],
        ["params", "lr   0.001"],
    ]
    assert lines[5].split() == ["act", "'relu'"]
    assert lines[6].split(maxsplit=1) == ["w", "<shape (10, 10), from 0 to 0>"]


def test_a_result_counts_the_evaluations_that_failed():
    assert "evaluations  4, of which 3 failed" in repr(result(box(2), ["done"] + ["failed"] * 3))


@pytest.mark.parametrize("bounds", [box(2), MIXED], ids=["box", "space"])
@pytest.mark.parametrize("statuses", [(), ("failed",), ("open", "failed")])
def test_a_result_without_a_best_point_says_where_to_look(bounds, statuses):
    shown = repr(result(bounds, statuses))
    name = "params" if bounds is MIXED else "x"
    assert "fun          nan" in shown
    assert shown.split("\n")[-1].split(maxsplit=1) == [
        name,
        "none; see result.trials for what went wrong",
    ]


def test_a_long_result_is_cut_whatever_is_long():
    names = {f"{i}" + "n" * 500: Categorical(["v" * 500, "w"]) for i in range(50)}
    lines = repr(result(Space(names), message="why\n" * 1000)).split("\n")
    assert len(lines) <= 15
    assert max(map(len, lines)) <= 180


def test_wide_letters_do_not_shift_the_values():
    lines = repr(result(Space({"日本語": Integer(1, 9), "größe": Integer(1, 9), "k": Integer(1, 9)}))).split("\n")[3:]
    assert [line[-1] for line in lines] == ["5"] * 3
    assert len({cell_len(line) for line in lines}) == 1


# ---- in a notebook


def test_a_notebook_shows_the_best_point_and_the_last_ten_trials():
    rows = rows_of(result(box(7), ["done"] * 12, origin="model")._repr_html_())
    at = rows.index(["Best point: result.x"])
    assert rows[:at] == [["message", "used the budget"], ["fun", "0"], ["evaluations", "12"]]
    assert rows[at + 7] == ["...", "and 1 more: result.x"]
    assert rows[at + 8] == ["Last 10 of 12 trials"]
    assert rows[at + 9] == ["id", "status", "value", "origin"]
    assert rows[at + 10 :] == [[str(i), "done", str(i), "model"] for i in range(2, 12)]


def test_a_notebook_shows_why_evaluations_failed():
    rows = rows_of(result(box(2), ["failed", "open"], reason="it\nmelted")._repr_html_())
    assert ["x", "none; see result.trials for what went wrong"] in rows
    assert ["0", "failed", "", "model", "it melted"] in rows
    assert rows_of(result(box(2), ())._repr_html_())[-1][0] == "x"


@pytest.mark.parametrize("text", [EVIL, INVISIBLE, "<!-- ", "x" * 10_000])
def test_whatever_a_user_writes_is_no_html_in_a_result(text):
    space = Space({text: Categorical([text, "other"]), "b": Boolean()})
    for statuses in (["done", "failed"], ["failed"]):
        shown = result(space, statuses, message=text, reason=text, origin=text)
        rows_of(shown._repr_html_())
        assert all(line.isprintable() for line in repr(shown).split("\n"))


# ---- where there is no best point


@pytest.mark.parametrize("bounds", [box(2), MIXED], ids=["box", "space"])
def test_a_best_point_is_never_none(bounds):
    found = result(bounds)
    assert found.x is found.x
    assert np.array_equal(found.x, found.trials[0].x)
    without = result(bounds, ["failed"])
    with pytest.raises(cylbo.NoResultError, match="no evaluation succeeded, so there is no best point"):
        _ = without.x
    assert (without.success, math.isnan(without.fun), len(without.trials)) == (False, True, 1)


def test_callers_need_not_ask_for_none():
    for name in ("x", "params"):
        kind = typing.get_type_hints(getattr(Result, name).fget)["return"]
        assert type(None) not in (kind, *typing.get_args(kind))


def test_a_best_point_that_would_break_a_constraint_is_none():
    broken = result(MIXED, ["done"], constraints=(1.0,))
    for name in ("x", "params"):
        with pytest.raises(
            cylbo.NoResultError,
            match=r"kept every constraint, .* see result.trials for how far each",
        ):
            getattr(broken, name)
    assert "how far each was off" in repr(broken)


def test_parameters_by_name_are_never_none():
    assert result(MIXED).params["act"] == "relu"
    with pytest.raises(cylbo.NoResultError, match="no evaluation succeeded"):
        _ = result(MIXED, ["failed"]).params
    for statuses in (["done"], ["failed"]):
        with pytest.raises(cylbo.NoResultError, match="no named parameters"):
            _ = result(box(2), statuses).params


def test_a_missing_result_can_be_caught_as_a_value_error_and_is_no_missing_attribute():
    with pytest.raises(ValueError, match="no best point") as caught:
        _ = result(box(2), ["failed"]).x
    assert isinstance(caught.value, cylbo.CylboError)
    assert not isinstance(caught.value, AttributeError)


@pytest.mark.parametrize("statuses", [["done"], ["failed"]])
@pytest.mark.parametrize("twin_of", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_of_a_result_is_as_good_as_the_result(statuses, twin_of):
    one = result(MIXED, statuses)
    twin = twin_of(one)
    assert repr(twin) == repr(one)
    assert twin._repr_html_() == one._repr_html_()
    assert twin != one
    with pytest.raises(dataclasses.FrozenInstanceError):
        twin.fun = 0.0


def test_a_result_without_a_best_point_is_exported_all_the_same(tmp_path):
    without = result(MIXED, ["failed"])
    without.to_csv(tmp_path / "run.csv")
    without.to_json(tmp_path / "run.json")
    for name in ("run.csv", "run.json"):
        assert [trial.status for trial in cylbo.earlier(tmp_path / name, MIXED)] == ["failed"]


def test_a_loaded_result_without_a_best_point_says_so(tmp_path):
    path = tmp_path / "run.db"
    cylbo.minimize(lambda x: math.nan, box(2), budget=1, seed=0, storage=path)
    loaded = cylbo.load(path)
    assert "none; see result.trials for what went wrong" in repr(loaded)
    with pytest.raises(cylbo.NoResultError):
        _ = loaded.x
