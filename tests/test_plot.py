"""Pictures: that they are made, from what, and what is said without matplotlib."""

import sys

import numpy as np
import pytest

from cylbo import plot


@pytest.fixture
def axes(monkeypatch, tmp_path):
    """Draw, and look at what was drawn instead of at pixels."""
    from matplotlib import pyplot

    monkeypatch.setattr(pyplot, "close", lambda _figure: None)
    yield lambda values, **options: (
        plot.convergence(values, tmp_path / "picture.png", **options),
        pyplot.gcf().axes[0],
    )[1]
    monkeypatch.undo()
    pyplot.close("all")


def test_the_curve_is_the_running_minimum_and_skips_failures(axes):
    (curve,) = [line for line in axes([3.0, np.nan, 5.0, 1.0, 2.0]).lines if line.get_label() == "best so far"]
    assert curve.get_ydata().tolist() == [3.0, 3.0, 3.0, 1.0, 1.0]


def test_with_an_optimum_the_axis_is_the_logarithm_of_the_gap(axes):
    drawn = axes([3.0, 2.0], optimum=1.0, references={"peer": 1.5})
    assert drawn.get_yscale() == "log"
    assert [line.get_ydata()[0] for line in drawn.lines] == [2.0, 0.5]


def test_a_missing_matplotlib_names_its_cure(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'cylbo\[plot\]'"):
        plot.convergence([1.0], tmp_path / "picture.png")
