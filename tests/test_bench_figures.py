"""Pictures of the lab: what they show, that methods can be told apart and that the bytes repeat."""

import sys
from itertools import pairwise

import numpy as np
import pytest

from cylbo.bench import figures
from cylbo.bench.methods import METHODS
from cylbo.bench.statistics import Comparison, compare

pytest.importorskip("matplotlib")

FALLING = np.array([1000.0, 100.0, 10.0, 1.0])


def lines(axis):
    """The drawn lines with data, by colour."""
    return {line.get_color(): line.get_ydata().tolist() for line in axis.lines if len(line.get_ydata()) > 2}


def test_every_method_has_a_look_of_its_own():
    looks = [figures.style(name) for name in METHODS]
    assert len({(look.colour, look.marker) for look in looks}) == len(METHODS)
    assert max(METHODS, key=lambda name: figures.style(name).width) == "default"


def test_a_method_of_another_version_keeps_its_look_and_is_shown_by_its_name():
    assert figures.style("from the future") == figures.style("from the future")
    assert figures.label("from the future") == "from the future"
    assert figures.label("paper") == "BOCK"


def test_convergence_shows_the_median_after_so_many_evaluations():
    runs = [np.array([9.0, 4.0, 4.0]), np.array([8.0, 2.0, 2.0]), np.array([7.0, 7.0, 1.0])]
    figure = figures.convergence({"levy": {"default": runs}}, at=[1, 4, 16], title="", above_minimum=[])
    (axis,) = figure.axes
    assert lines(axis) == {figures.style("default").colour: [8.0, 4.0, 2.0]}
    assert axis.lines[0].get_xdata().tolist() == [1, 4, 16]
    assert axis.get_yscale() == "linear"
    assert axis.get_ylabel() == "best value"


def test_regrets_over_decades_have_a_log_axis_and_zero_stays_visible():
    curves = {"default": [np.array([1000.0, 1.0, 0.0])], "sobol": [np.array([1000.0, 900.0, 800.0])]}
    figure = figures.convergence({"levy": curves}, at=[1, 2, 3], title="", above_minimum=["levy"])
    (axis,) = figure.axes
    assert axis.get_yscale() == "log"
    assert lines(axis)[figures.style("default").colour] == pytest.approx(
        [1000.0, 1.0, 0.1]
    )  # a decade below what is positive


def test_regrets_of_one_size_have_a_linear_axis():
    curves = {"default": [np.array([3.0, 2.0, 2.0])]}
    figure = figures.convergence({"levy": curves}, at=[1, 2, 3], title="", above_minimum=["levy"])
    assert figure.axes[0].get_yscale() == "linear"
    assert figure.axes[0].get_ylabel() == "best above the minimum"


def test_a_regret_of_nearly_nothing_does_not_press_the_others_together():
    curves = {"default": [np.array([1000.0, 1.0, 1e-30])]}
    figure = figures.convergence({"levy": curves}, at=[1, 2, 3], title="", above_minimum=["levy"])
    assert lines(figure.axes[0])[figures.style("default").colour][-1] == pytest.approx(1e-6)


def test_the_legend_names_each_method_once_in_the_order_of_the_lab():
    panels = {"levy": {"sobol": [FALLING], "zzz": [FALLING]}, "branin": {"sobol": [FALLING], "paper": [FALLING]}}
    figure = figures.convergence(panels, at=range(1, 5), title="", above_minimum=[])
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["BOCK", "Sobol", "zzz"]
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["levy", "branin"]


def test_efficiency_puts_medians_where_they_belong():
    seconds, reached = np.array([10.0, 30.0, 20.0]), np.array([1.0, 5.0, 3.0])
    figure = figures.efficiency({"levy": {"paper": (seconds, reached)}}, title="", above_minimum=[])
    point = figure.axes[0].lines[0]
    assert (point.get_xdata().tolist(), point.get_ydata().tolist()) == ([20.0], [3.0])
    assert figure.axes[0].get_xscale() == "log"


def test_a_large_marker_hides_no_small_one_at_the_same_place():
    point = np.ones(1), np.ones(1)
    figure = figures.efficiency({"levy": {"sobol": point, "paper": point}}, title="", above_minimum=[])
    small, large = sorted(figure.axes[0].lines, key=lambda line: line.get_markersize())
    assert small.get_markersize() < large.get_markersize()
    assert small.get_zorder() > large.get_zorder()


def labels(axis):
    """The texts at the ticks in view, from one end to the other, with their boxes."""
    axis.axes.figure.draw_without_rendering()
    low, high = axis.get_view_interval()
    ticks = [tick for tick in axis.get_major_ticks() + axis.get_minor_ticks() if low <= tick.get_loc() <= high]
    shown = sorted((tick.get_loc(), tick.label1) for tick in ticks if tick.label1.get_text())
    return [text.get_text() for _, text in shown], [text.get_window_extent() for _, text in shown]


def test_seconds_that_hardly_differ_have_ticks_that_can_be_read():
    points = {"paper": (np.array([108.0, 109.0, 113.0]), np.ones(3))}
    figure = figures.efficiency(dict.fromkeys("abcd", points), title="", above_minimum=[])
    for axes in figure.axes:
        words, boxes = labels(axes.xaxis)
        assert words == ["50", "100", "200"]
        assert not any(left.overlaps(right) for left, right in pairwise(boxes))


def test_seconds_over_many_decades_are_marked_at_powers_of_ten():
    points = {"sobol": (np.array([0.02]), np.ones(1)), "paper": (np.array([500.0]), np.ones(1))}
    figure = figures.efficiency({"levy": points}, title="", above_minimum=[])
    words, _ = labels(figure.axes[0].xaxis)
    assert len(words) >= 3
    assert words[:2] == ["10⁻¹", "10⁰"]


def test_one_lucky_run_does_not_make_the_losses_logarithmic_when_no_quartile_shows_it():
    reached = np.array([1e-9, *np.linspace(1.0, 2.0, 9)])
    figure = figures.efficiency({"levy": {"paper": (np.ones(10), reached)}}, title="", above_minimum=["levy"])
    assert figure.axes[0].get_yscale() == "linear"


def test_scalability_joins_the_dimensions_in_their_order():
    line = {100: np.array([7.0, 9.0, 8.0]), 20: np.array([1.0])}
    figure = figures.scalability({"levy": {"paper": line}}, title="")
    drawn = figure.axes[0].lines[0]
    assert (drawn.get_xdata().tolist(), drawn.get_ydata().tolist()) == ([20, 100], [1.0, 8.0])
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["20", "100"]


def bars(figure):
    """The ends of the thick lines, which join methods."""
    return [line.get_xdata() for line in figure.axes[0].lines if line.get_linewidth() == 3.0]


def test_the_diagram_joins_methods_that_do_not_differ():
    found = Comparison(("default", "paper", "sobol"), (1.0, 1.5, 3.0), (1.0, 1.5, 3.0), 20, 0.001, 0.6)
    figure = figures.rank(found, title="")
    assert [end.tolist() for end in bars(figure)] == [pytest.approx([1.0, 1.5], abs=0.05)]
    words = [text.get_text() for text in figure.axes[0].texts]
    assert {"cylbo  1.00", "BOCK  1.50", "3.00  Sobol", "critical difference 0.60"} <= set(words)


def test_without_a_significant_test_one_bar_joins_all():
    found = Comparison(("default", "sobol"), (1.0, 2.0), (1.0, 2.0), 2, p_value=0.16, critical_difference=0.5)
    (bar,) = bars(figures.rank(found, title=""))
    assert bar == pytest.approx([1.0, 2.0], abs=0.05)


def test_a_picture_is_written_with_the_same_bytes_each_time(tmp_path):
    pictures = []
    for _ in range(2):
        figure = figures.convergence(
            {"a $b$": {r"$\no$": [FALLING]}}, at=range(1, 5), title=r"$\formula$", above_minimum=["a $b$"]
        )
        figures.save(figure, tmp_path / "some.name.svg")
        pictures.append((tmp_path / "some.name.svg").read_bytes())
    assert pictures[0] == pictures[1]
    assert b"<dc:date>" not in pictures[0]


def test_labels_do_not_overlap_in_the_diagram_of_many_methods():
    names = [f"method {i}" for i in range(18)]
    found = compare({name: {p: (3 * i + p) % 19 for p in range(4)} for i, name in enumerate(names)})
    assert found is not None
    figure = figures.rank(found, title="title")
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in figure.axes[0].texts]
    assert not [(a, b) for i, a in enumerate(boxes) for b in boxes[:i] if a.overlaps(b)]
    assert all(box.x0 > 0 and box.x1 < figure.bbox.x1 for box in boxes)


def test_a_missing_matplotlib_names_its_cure(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'cylbo\[plot\]'"):
        figures.convergence({"levy": {"paper": [FALLING]}}, at=range(1, 5), title="", above_minimum=[])
