"""Pictures of runs: what they show of which trials, and what is said of bad input."""

import sys

import numpy as np
import pytest

import cylbo
from cylbo.plot import convergence
from cylbo.record.trial import Trial

X = np.zeros(2)


@pytest.fixture(autouse=True)
def pyplot():
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


def result(*trials, direction="minimize"):
    """A result of these trials, each given as a dict of its fields."""
    made = [Trial(i, X, **{"status": "done", **fields}) for i, fields in enumerate(trials)]
    values, box = np.array([trial.value for trial in made]), np.array([(-1.0, 1.0)] * 2)
    points = np.zeros((len(made), 2))
    return cylbo.Result(X, 0.0, len(made), points, values, True, "", made, bounds=box, direction=direction)


def done(*values, **fields):
    return [{"value": value, **fields} for value in values]


def curve(axes, label="best so far"):
    (found,) = [line for line in axes.lines if line.get_label() == label]
    return found.get_xdata().tolist(), found.get_ydata().tolist()


def points(axes, label):
    """Numbers of evaluations and heights of the marks with that label."""
    found = [marks for marks in axes.collections if marks.get_label() == label]
    return [] if not found else found[0].get_offsets().tolist()


def legend(axes):
    shown = axes.get_legend() or axes.figure.legends[0]
    return [text.get_text() for text in shown.get_texts()]


# ---- what is drawn


def test_of_values_to_minimise_the_curve_is_the_running_minimum_and_skips_failures():
    axes = convergence([3.0, np.nan, 5.0, 1.0, 2.0])
    assert curve(axes) == ([1, 2, 3, 4, 5], [3.0, 3.0, 3.0, 1.0, 1.0])


def test_of_values_to_maximise_the_curve_is_the_running_maximum():
    axes = convergence([0.3, np.nan, 0.5, 0.1], direction="maximize")
    assert curve(axes) == ([1, 2, 3, 4], [0.3, 0.3, 0.5, 0.5])


def test_a_result_and_an_optimizer_know_their_direction():
    trials = done(0.3, 0.5, 0.1)
    assert curve(convergence(result(*trials)))[1] == [0.3, 0.3, 0.1]
    assert curve(convergence(result(*trials, direction="maximize")))[1] == [0.3, 0.5, 0.5]
    opt = cylbo.Optimizer([(-1, 1)] * 2, seed=0, direction="maximize")
    for value in (0.3, 0.5, 0.1):
        opt.tell(opt.ask(), value)
    assert curve(convergence(opt))[1] == [0.3, 0.5, 0.5]


def test_failed_evaluations_are_crosses_at_the_bottom_that_the_legend_counts():
    axes = convergence(result(*done(3.0), {"status": "failed"}, *done(2.0), {"status": "failed"}))
    assert [x for x, _ in points(axes, "2 failed")] == [2, 4]
    assert points(axes, "each evaluation") == [[1, 3.0], [3, 2.0]]
    assert legend(axes) == ["best so far", "each evaluation", "2 failed"]
    # Below every value, in pixels
    axes.figure.draw_without_rendering()
    (crosses,) = [marks for marks in axes.collections if marks.get_label() == "2 failed"]
    heights = axes.get_xaxis_transform().transform(crosses.get_offsets())[:, 1]
    assert max(heights) < axes.transData.transform((1, 2.0))[1]


def test_the_crosses_of_many_runs_stand_in_rows_below_the_curves():
    runs = {f"run {i}": [2.0, np.nan, 1.0] for i in range(5)}
    axes = convergence(runs)
    axes.figure.draw_without_rendering()
    rows = [points(axes, f"1 failed, {label}")[0][1] for label in runs]
    assert len(set(rows)) == 5
    lowest = axes.transAxes.inverted().transform(axes.transData.transform((3, 1.0)))[1]
    assert max(rows) < lowest


def test_a_value_that_breaks_a_constraint_is_shown_but_is_not_the_best():
    trials = [*done(5.0, constraints=(-1.0,)), *done(1.0, constraints=(0.5,)), *done(4.0, constraints=(0.0,))]
    axes = convergence(result(*trials))
    assert curve(axes)[1] == [5.0, 5.0, 4.0]
    assert points(axes, "1 breaking a constraint") == [[2, 1.0]]
    assert points(axes, "each evaluation") == [[1, 5.0], [3, 4.0]]


@pytest.mark.parametrize("origin", ["told", "added"])
def test_evaluations_made_elsewhere_are_not_counted_and_the_curve_begins_with_the_best_of_them(origin):
    axes = convergence(result(*done(7.0, 6.0, 9.0, origin=origin), *done(8.0, 2.0)))
    assert curve(axes) == ([0, 1, 2], [6.0, 6.0, 2.0])
    assert points(axes, "each evaluation") == [[1, 8.0], [2, 2.0]]


def test_an_evaluation_added_on_the_way_counts_as_best_from_there_on():
    axes = convergence(result(*done(8.0), *done(3.0, origin="added"), *done(5.0)))
    assert curve(axes) == ([1, 2], [3.0, 3.0])
    axes = convergence(result(*done(8.0, 5.0), *done(3.0, origin="added"), *done(4.0)))
    assert curve(axes) == ([1, 2, 3], [8.0, 3.0, 3.0])


def test_the_earlier_evaluations_of_a_real_run_begin_the_curve():
    run = cylbo.minimize(lambda x: x[0] ** 2 + 1, [(-1, 1)], budget=2, seed=0, x0=[[0.5], [-1.0]], y0=[1.25, 2.0])
    (x, best), axes = curve(convergence(run)), convergence(run)
    assert (x, best[0], best[1]) == ([0, 1, 2], 1.25, 1.0)
    assert len(points(axes, "each evaluation")) == run.nfev == 2


@pytest.mark.parametrize("status", ["open", "cancelled"])
def test_trials_that_gave_nothing_yet_are_left_out(status):
    axes = convergence(result(*done(3.0), {"status": status}, *done(2.0)))
    assert curve(axes) == ([1, 2], [3.0, 2.0])
    assert legend(axes) == ["best so far", "each evaluation"]


def test_with_an_optimum_the_axis_is_the_logarithm_of_the_distance_in_either_direction():
    axes = convergence([3.0, 2.0], optimum=1.0, references={"peer": 1.5})
    assert axes.get_yscale() == "log"
    assert (curve(axes)[1], axes.get_ylabel()) == ([2.0, 1.0], "value above the optimum")
    assert axes.lines[-1].get_ydata()[0] == 0.5
    axes = convergence([0.25, 0.5], optimum=1.0, references={"peer": 0.75}, direction="maximize")
    assert axes.get_yscale() == "log"
    assert (curve(axes)[1], axes.get_ylabel()) == ([0.75, 0.5], "value below the optimum")
    assert axes.lines[-1].get_ydata()[0] == 0.25


def test_a_run_that_reaches_the_optimum_can_be_drawn():
    axes = convergence([3.0, 1.0, 0.5], optimum=1.0, references={"best possible": 1.0})
    axes.figure.draw_without_rendering()
    assert 0.0 < axes.get_ylim()[0] < 2.0 < axes.get_ylim()[1]
    convergence([1.0], optimum=1.0).figure.draw_without_rendering()


@pytest.mark.parametrize(("level", "over"), [(3.0, True), (0.5, False)])
def test_the_label_of_a_level_keeps_away_from_the_end_of_the_curve(level, over):
    axes = convergence([4.0, 1.0], references={"peer": level})
    axes.figure.draw_without_rendering()
    (text,) = axes.texts
    assert (text.get_window_extent().y0 > axes.transData.transform((1, level))[1]) == over
    end = axes.transData.transform((2, 1.0))[1]
    assert not text.get_window_extent().y0 < end < text.get_window_extent().y1


# ---- several runs


@pytest.mark.parametrize(
    "draw",
    [
        lambda one, other: convergence({"a": one, "b": other}),
        lambda one, other: convergence(one, other, labels=["a", "b"]),
    ],
)
def test_runs_are_compared_by_label(draw):
    axes = draw(result(*done(4.0, 2.0)), [5.0, np.nan])
    assert (curve(axes, "a")[1], curve(axes, "b")[1]) == ([4.0, 2.0], [5.0, 5.0])
    assert legend(axes) == ["a", "b", "1 failed, b"]


def test_runs_without_labels_are_numbered():
    assert legend(convergence([1.0], [2.0])) == ["run 1", "run 2"]


def test_a_run_has_one_colour_and_runs_differ_in_more_than_colour():
    from matplotlib.colors import same_color

    trials = [*done(4.0), {"status": "failed"}, *done(1.0, constraints=(1.0,))]
    axes = convergence(*[result(*trials) for _ in range(9)])
    looks = [(line.get_linestyle(), line.get_marker()) for line in axes.lines]
    assert len(set(looks)) == 9
    for i, line in enumerate(axes.lines):
        for marks in axes.collections[3 * i : 3 * i + 3]:
            assert all(same_color(colour[:3], line.get_color()) for colour in marks.get_edgecolor())


def test_plain_values_take_the_direction_of_the_runs_beside_them():
    axes = convergence({"run": result(*done(1.0), direction="maximize"), "random": [1.0, 2.0, 0.0]})
    assert curve(axes, "random")[1] == [1.0, 2.0, 2.0]


def test_directions_are_not_mixed():
    up, down = result(*done(1.0), direction="maximize"), result(*done(1.0))
    for runs, direction in (((up, down), None), ((up,), "minimize"), ((down, [1.0]), "maximize")):
        with pytest.raises(ValueError, match="expected runs of one direction"):
            convergence(*runs, direction=direction)


# ---- little to draw


@pytest.mark.parametrize(
    ("values", "note"), [([], "no evaluations"), ([np.nan, np.inf, np.nan], "no evaluation succeeded")]
)
@pytest.mark.parametrize("optimum", [None, 0.0])
def test_a_picture_of_nothing_says_so(values, note, optimum):
    axes = convergence(values, optimum=optimum)
    axes.figure.draw_without_rendering()
    assert [text.get_text() for text in axes.texts] == [note]
    assert len(points(axes, f"{len(values)} failed")) == len(values)


def test_a_single_evaluation_can_be_seen():
    axes = convergence([2.0])
    assert (curve(axes), points(axes, "each evaluation")) == (([1], [2.0]), [[1, 2.0]])
    assert axes.lines[0].get_marker() == "o"


# ---- where it is drawn


def test_the_figure_stays_open_to_be_shown_and_the_backend_stays_as_it_is(pyplot):
    before = pyplot.get_backend()
    axes = convergence([1.0])
    assert pyplot.get_fignums() == [axes.figure.number]
    assert pyplot.get_backend() == before


def test_a_given_axes_is_drawn_into_and_no_other_figure_is_made(pyplot):
    figure, (left, right) = pyplot.subplots(1, 2)
    assert convergence([1.0], ax=right, title="on the right") is right
    assert pyplot.get_fignums() == [figure.number]
    assert (right.get_title(loc="left"), left.lines[:]) == ("on the right", [])


def test_a_path_saves_the_figure_as_well_and_leaves_it_open(tmp_path, pyplot):
    axes = convergence([1.0], path=tmp_path / "run.png")
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")
    assert pyplot.fignum_exists(axes.figure.number)
    part = pyplot.figure().subfigures(1, 2)[0].subplots()
    convergence([1.0], ax=part, path=str(tmp_path / "part.svg"))
    assert "<svg" in (tmp_path / "part.svg").read_text(encoding="utf-8")


def test_neither_labels_nor_legend_are_cut_off_by_the_edge(pyplot):
    runs = {f"a method with a long name {i}": [3.0, np.nan, 1.0] for i in range(3)}
    for axes in (convergence(runs), convergence(result(*done(3.0), {"status": "failed"}, *done(1.0)))):
        axes.figure.draw_without_rendering()
        whole, box = axes.figure.bbox, axes.figure.legends[0].get_window_extent()
        assert whole.x0 <= box.x0 < box.x1 <= whole.x1
        assert whole.y0 <= box.y0 < box.y1 <= whole.y1
        assert not box.overlaps(axes.get_window_extent())


# ---- bad input


@pytest.mark.parametrize(
    ("runs", "options", "kind", "message"),
    [
        ((), {}, ValueError, "expected at least one run, got none"),
        (({},), {}, ValueError, "expected at least one run, got none"),
        (([1.0], "demo.png"), {}, TypeError, "got 'demo.png' as 'run 2'; give a file with path="),
        ((None,), {}, TypeError, "expected a Result, an Optimizer or .n,. values, got None"),
        (([[1.0, 2.0], [3.0, 4.0]],), {}, ValueError, r"got shape \(2, 2\)"),
        (([1.0], [2.0]), {"labels": ["a"]}, ValueError, r"labels must be a list of 2, .*, got \['a'\]"),
        (([1.0], [2.0]), {"labels": "ab"}, ValueError, "labels must be a list of 2"),
        (({"a": [1.0]},), {"labels": ["a"]}, ValueError, "labels must be None"),
        (([1.0],), {"direction": "max"}, ValueError, "direction must be 'minimize', 'maximize' or None, got 'max'"),
    ],
)
def test_bad_input_is_refused_before_a_figure_is_made(runs, options, kind, message, pyplot):
    with pytest.raises(kind, match=message):
        convergence(*runs, **options)
    assert pyplot.get_fignums() == []


def test_a_missing_matplotlib_names_its_cure(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'cylbo\[plot\]'"):
        convergence([1.0])
