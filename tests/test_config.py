"""The methods: their numbers, and numbers that no method could work with."""

import dataclasses
import math

import numpy as np
import pytest

import cylbo
from cylbo.methods import resolve_method
from cylbo.model import scaling as outputs
from cylbo.model.beliefs import Form
from cylbo.model.kernel import Cylindrical, Matern
from cylbo.search import climb as ascent
from cylbo.search.improvement import expected_improvement, log_expected_improvement
from cylbo.search.learn import fitted, sampled

NAMES = ("default", "cylinder", "paper", "paper-w", "paper+b", "matern")


def changed_fields(config, reference):
    fields = [f.name for f in dataclasses.fields(config)]
    return {name for name in fields if getattr(config, name) != getattr(reference, name)}


def test_the_methods_have_the_names_of_the_interface():
    assert tuple(cylbo.METHODS) == NAMES
    assert all(config.name == name for name, config in cylbo.METHODS.items())
    assert cylbo.METHODS["default"] is cylbo.DEFAULT
    assert cylbo.METHODS["paper"] is cylbo.PAPER


def test_paper_has_the_numbers_of_the_paper_and_of_the_authors_code():
    paper = cylbo.PAPER  # numbers from method.md, sections 3 to 7
    assert (paper.angular_degree, paper.warped, paper.boundary) == (3, True, False)
    assert (paper.n_sobol, paper.n_spray, paper.spray_scales, paper.n_starts) == (20_000, 10, (0.002,), 20)
    assert (paper.first_sweeps, paper.sweeps) == (100, 10)
    assert (paper.learning_rate, paper.max_steps) == (0.01, 500)
    assert paper.stabilizer == 1e-6
    assert paper.jitters[0] == pytest.approx(1e-6)
    assert np.allclose(np.diff(np.log10(paper.jitters)), 1.0)
    assert (paper.scaling, paper.acquisition) == (outputs.raw, expected_improvement)
    assert paper.climb is ascent.climb_until_no_decrease
    assert (paper.sobol, paper.spray) == (ascent.sobol_window, ascent.reflected_spray)
    assert (paper.slice_width, paper.tune_widths) == (1.0, False)
    assert (paper.kernel, paper.learn) == (Cylindrical, sampled)
    assert (paper.n_leaders, paper.starts_per_group) == (1, None)  # one spray, one list of starts
    assert paper.threads == 1


def test_cylinder_takes_the_recommended_rows():
    cylinder = cylbo.METHODS["cylinder"]
    assert cylinder.stabilizer < 1e-8  # sized for float64
    assert (cylinder.scaling, cylinder.acquisition) == (outputs.standardized, log_expected_improvement)
    assert cylinder.climb is ascent.climb_keeping_best
    assert (cylinder.sobol, cylinder.spray) == (ascent.sobol_shifted, ascent.projected_spray)
    assert cylinder.tune_widths
    assert cylinder.threads == 1
    assert (cylinder.kernel, cylinder.learn) == (Cylindrical, sampled)


def test_cylinder_keeps_the_papers_kernel_and_amount_of_sampling():
    cylinder, paper = cylbo.METHODS["cylinder"], cylbo.PAPER
    kept = ("kernel", "angular_degree", "warped", "boundary", "learn", "first_sweeps", "sweeps", "n_sobol", "n_starts")
    assert not changed_fields(cylinder, paper) & set(kept)
    assert (cylinder.n_leaders, cylinder.starts_per_group) == (1, None)


def test_default_is_a_fitted_process_of_one_of_three_forms():
    default = cylbo.DEFAULT
    assert (default.kernel, default.learn, default.warped) == (Matern, fitted, False)
    # The simplest first, which is taken where there is nothing to choose by
    assert default.forms == (Form(), Form(stretched=True), Form(stretched=True, effects=True))
    assert default.acquisition is log_expected_improvement
    assert default.spray is ascent.sparse_spray
    assert default.climb is ascent.climb_quasi_newton
    assert default.threads == 1
    # Every start that is climbed from can be found, and no group alone can give them all
    assert default.starts_per_group < default.n_starts
    assert default.n_starts <= default.starts_per_group * (1 + len(default.spray_scales))


def test_the_variants_are_settings_of_the_paper_method():
    paper = cylbo.PAPER
    assert changed_fields(cylbo.METHODS["paper-w"], paper) == {"name", "warped"}
    assert changed_fields(cylbo.METHODS["paper+b"], paper) == {"name", "boundary"}
    assert changed_fields(cylbo.METHODS["matern"], paper) == {"name", "kernel", "warped"}
    assert not cylbo.METHODS["paper-w"].warped
    assert cylbo.METHODS["paper+b"].boundary
    assert cylbo.METHODS["matern"].kernel is Matern


def test_a_config_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        cylbo.PAPER.sweeps = 1


@pytest.mark.parametrize(
    "name",
    [
        "angular_degree",
        "n_first_discrete",
        "first_sweeps",
        "sweeps",
        "n_sobol",
        "n_starts",
        "max_steps",
        "n_leaders",
        "fit_points",
        "fit_steps",
        "warm_steps",
        "screening_samples",
        "threads",
    ],
)
@pytest.mark.parametrize("value", [0, -1, 2.0, "3", None, True])
def test_counts_must_be_positive_integers(name, value):
    with pytest.raises(ValueError, match=rf"{name} .*at least 1, got"):
        dataclasses.replace(cylbo.PAPER, **{name: value})


@pytest.mark.parametrize("value", [0.0, -0.1, 1.1, math.nan])
def test_the_screening_share_is_a_positive_fraction(value):
    with pytest.raises(ValueError, match="screening_share in"):
        dataclasses.replace(cylbo.PAPER, screening_share=value)


@pytest.mark.parametrize("name", ["refit_growth", "warm_growth"])
@pytest.mark.parametrize("value", [0.0, -0.1, math.nan, math.inf])
def test_the_growth_between_fits_is_a_finite_positive_number(value, name):
    with pytest.raises(ValueError, match=f"{name} > 0"):
        dataclasses.replace(cylbo.DEFAULT, **{name: value})


@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf])
def test_the_ambition_is_a_finite_nonnegative_number(value):
    with pytest.raises(ValueError, match="ambition >= 0"):
        dataclasses.replace(cylbo.DEFAULT, ambition=value)


def test_a_method_has_at_least_one_form():
    with pytest.raises(ValueError, match="at least one of `forms`"):
        dataclasses.replace(cylbo.DEFAULT, forms=())


@pytest.mark.parametrize("value", [-1e-6, math.nan, math.inf])
def test_the_stabilizer_is_a_finite_nonnegative_number(value):
    with pytest.raises(ValueError, match="stabilizer >= 0"):
        dataclasses.replace(cylbo.PAPER, stabilizer=value)


@pytest.mark.parametrize("name", NAMES)
def test_a_method_is_found_by_name(name):
    assert resolve_method(name) is cylbo.METHODS[name]


def test_a_config_is_its_own_method():
    own = dataclasses.replace(cylbo.PAPER, angular_degree=5)
    assert resolve_method(own) is own


@pytest.mark.parametrize("method", ["bock", "", "Default", None, 3, ["default"], cylbo.Method])
@pytest.mark.parametrize("call", [resolve_method, lambda method: cylbo.Optimizer([(0, 1)], method=method)])
def test_the_message_about_an_unknown_method_lists_all_methods(method, call):
    with pytest.raises(ValueError, match="method must be one of") as caught:
        call(method)
    assert all(repr(name) in str(caught.value) for name in NAMES)
    assert repr(method) in str(caught.value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n_spray", -1),
        ("n_spray", 1.0),
        ("cover", -1),
        ("cover", 0.5),
        ("cover", True),
        ("starts_per_group", 0),
        ("starts_per_group", -1),
    ],
)
def test_numbers_of_candidates_and_starts_that_make_no_sense_are_refused(field, value):
    with pytest.raises(ValueError, match=f"Method expected {field}.*got {value}"):
        dataclasses.replace(cylbo.DEFAULT, **{field: value})
