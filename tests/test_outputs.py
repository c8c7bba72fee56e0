import math

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cylbo.model.scaling import compressed, from_compressed, gaps, in_gaps, raw, standardized

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def array(values):
    return np.array(values, dtype=np.float64)


def test_standardized_is_what_numpy_says():
    y = np.random.default_rng(0).gamma(2.0, size=50)
    np.testing.assert_allclose(standardized(array(y)), (y - y.mean()) / y.std(ddof=1), rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-300, 1e-3, 1.0, 1e3, 1e300, 1.7e308])
@pytest.mark.parametrize("values", [[-1.0, 1.0], [0.0, 0.25, 1.0], [-0.3, -0.9, 0.1, 0.1]])
def test_standardized_does_not_depend_on_the_unit(scale, values):
    expected = (np.array(values) - np.mean(values)) / np.std(values, ddof=1)
    np.testing.assert_allclose(standardized(array(values) * scale), expected, rtol=1e-10)


@pytest.mark.parametrize("offset", [1e3, -1e6])
def test_standardized_does_not_depend_on_the_origin(offset):
    y = array([0.0, 0.25, 1.0])
    np.testing.assert_allclose(standardized(y + offset), standardized(y), rtol=1e-9)


@given(st.lists(FINITE, min_size=2, max_size=8))
def test_standardized_has_mean_zero_and_standard_deviation_one(values):
    low, high = min(values), max(values)
    assume(high / 2 - low / 2 > 1e-290)
    z = standardized(array(values))
    assert np.isfinite(z).all()
    assert z.mean() == pytest.approx(0.0, abs=1e-9)
    assert z.std(ddof=1) == pytest.approx(1.0, rel=1e-9)


@given(st.lists(FINITE, min_size=1, max_size=8), st.sampled_from([raw, standardized]))
def test_better_values_stay_at_least_as_good(values, scaling):
    order = np.argsort(values)
    scaled = scaling(array(values))
    assert np.isfinite(scaled).all()
    assert (np.diff(scaled[order]) >= 0).all()


@pytest.mark.parametrize("values", [[3.0], [2.0, 2.0, 2.0], [1e308, 1e308], [0.0, 0.0]])
def test_equal_values_become_zeros(values):
    assert standardized(array(values)).tolist() == [0.0] * len(values)


def test_raw_leaves_values_as_they_are():
    y = array([1.0, -5e99, 3e-300])
    assert np.array_equal(raw(y), y)


def test_raw_divides_by_the_largest_only_where_squares_would_overflow():
    np.testing.assert_allclose(raw(array([2e200, -4e200, 1e200])), [0.5, -1.0, 0.25], rtol=1e-14)
    assert math.isfinite((raw(array([1.7e308, -1.7e308])) ** 2).sum())


@pytest.mark.parametrize("scaling", [raw, standardized, gaps, lambda y: compressed(gaps(y), 0.0)[0]])
def test_values_are_not_modified(scaling):
    y = array([1e200, 2.0, -3.0])
    before = y.copy()
    scaled = scaling(y)
    assert scaled.dtype == np.float64
    assert np.array_equal(y, before)


@pytest.mark.parametrize("scale", [1e-200, 1e-3, 1.0, 1e3, 1e200])
@pytest.mark.parametrize("values", [[-1.0, 1.0], [0.0, 0.25, 1.0, 7.0], [-0.3, -0.9, 0.1, 0.1, -0.9]])
def test_gaps_do_not_depend_on_the_unit(scale, values):
    np.testing.assert_allclose(gaps(scale * array(values)), gaps(array(values)), rtol=1e-12)


@given(
    st.lists(st.integers(-1000, 1000), min_size=1, max_size=9),
    st.integers(-10, 10),
    st.integers(-(10**6), 10**6),
)
def test_gaps_are_invariant_under_increasing_affine_maps(values, exponent, offset):
    y = array(values)  # integers and powers of 2, so that the map itself rounds nothing
    np.testing.assert_allclose(gaps(2.0**exponent * y + offset), gaps(y), rtol=1e-14)


@pytest.mark.parametrize(
    ("values", "unit"),
    [
        ([5.0, 2.0, 3.0], 2.0),  # the gaps 1 and 3; one that counted the lowest would take 1
        ([2.0, 2.0, 2.0, 2.0, 10.0], 8.0),  # many equal bests are no reason for a unit of 0
        ([-1.0, 0.0, 1.0, 1e9], 2.0),  # the tail does not matter
        ([7.0, 4.0], 3.0),
    ],
)
def test_the_unit_of_gaps_is_the_middle_positive_gap(values, unit):
    np.testing.assert_allclose(gaps(array(values)), (np.array(values) - min(values)) / unit, rtol=1e-15)


@pytest.mark.parametrize("values", [[3.0], [2.0, 2.0, 2.0], [-1e308, -1e308], [0.0, -0.0]])
def test_equal_values_have_no_gaps(values):
    assert gaps(array(values)).tolist() == [0.0] * len(values)


def test_gaps_of_the_largest_floats_do_not_overflow():
    np.testing.assert_allclose(gaps(array([1e308, -1e308, 0.0])), np.array([2.0, 0.0, 1.0]) / 1.5, rtol=1e-15)
    np.testing.assert_allclose(gaps(array([1.7e308, -1.7e308])), [1.0, 0.0], rtol=1e-15)


@pytest.mark.parametrize("values", [[0.0, 0.2, 0.3, 1.0, 1.7e308], [0.0, 1.0, 1.0, 1.7e308]])
def test_a_largest_float_among_ordinary_values_can_be_compressed(values):
    for outcome in compressed(gaps(array(values)), 3.0):
        assert np.isfinite(outcome).all()


GAPS = st.lists(st.one_of(st.just(0.0), st.floats(1e-12, 1e12)), min_size=1, max_size=8)
LOG_STRENGTHS = st.floats(-5.0, 3.0)


@given(GAPS, LOG_STRENGTHS)
def test_compression_and_its_derivatives_are_what_mpmath_says(values, log_strength):
    def t(g, a):
        return mpmath.log(1 + mpmath.exp(a) * g) / mpmath.exp(a)

    def log_slope(g, a):
        return mpmath.log(mpmath.diff(lambda v: t(v, a), g))

    found, by_strength, log_jacobian, jacobian_by_strength = compressed(array(values), log_strength)
    with mpmath.workdps(60):
        a = mpmath.mpf(log_strength)
        exact = [mpmath.mpf(v) for v in values]
        np.testing.assert_allclose(found, [float(t(g, a)) for g in exact], rtol=1e-13)
        slopes = [float(mpmath.diff(lambda b, g=g: t(g, b), a)) for g in exact]
        # the difference of two nearly equal numbers where strength * gap is small
        np.testing.assert_array_less(np.abs(by_strength - slopes), 1e-14 * array(values) + 1e-300)
        assert log_jacobian == pytest.approx(float(sum(log_slope(g, a) for g in exact)), rel=1e-10, abs=1e-20)
        expected = float(sum(mpmath.diff(lambda b, g=g: -mpmath.log(1 + mpmath.exp(b) * g), a) for g in exact))
        assert jacobian_by_strength == pytest.approx(expected, rel=1e-10, abs=1e-20)


@given(GAPS, LOG_STRENGTHS)
def test_compression_keeps_the_order_and_never_stretches(values, log_strength):
    gap = np.sort(array(values))
    t = compressed(gap, log_strength)[0]
    clearly = np.diff(gap) > 1e-12 * gap[1:]
    assert (np.diff(t) >= 0.0).all()
    assert (np.diff(t)[clearly] > 0.0).all()
    assert (t <= gap * (1.0 + 1e-15)).all()


def test_weak_compression_leaves_the_gaps_as_they_are():
    gap = array([0.0, 1e-3, 1.0, 30.0])
    t, by_strength, log_jacobian, jacobian_by_strength = compressed(gap, math.log(1e-12))
    np.testing.assert_allclose(t, gap, rtol=1e-10)
    np.testing.assert_allclose(by_strength, 0.0, atol=1e-8)
    assert log_jacobian == pytest.approx(0.0, abs=1e-9)
    assert jacobian_by_strength == pytest.approx(0.0, abs=1e-9)


def test_compressing_makes_a_thousandfold_tail_a_logarithm():
    t = compressed(array([1e3, 1e6, 1e9]), 3.0)[0]
    np.testing.assert_allclose(np.diff(t), math.log(1e3) / math.exp(3.0), rtol=1e-3)


# ---- differences of values, and the way back


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=9), st.floats(0.0, 1e6))
def test_differences_are_measured_in_the_unit_of_gaps(values, number):
    y = array(values)
    assume(y.min() < y.max())
    unit = np.median([v - min(values) for v in values if v > min(values)])
    assume(unit > 1e-290)
    np.testing.assert_allclose(in_gaps(number, y), min(number / unit, 1e100), rtol=1e-12)
    np.testing.assert_allclose(in_gaps(y - y.min(), y), gaps(y), rtol=1e-12)  # so that a gap is a difference
    np.testing.assert_allclose(in_gaps(array([number, 0.0]), y), [in_gaps(number, y), 0.0])


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_differences_in_gaps_do_not_depend_on_the_unit(scale):
    y, sd = array([-0.3, -0.9, 0.1, 7.0]), array([0.0, 0.5, 2.0])
    np.testing.assert_allclose(in_gaps(scale * sd, scale * y), in_gaps(sd, y), rtol=1e-12)


@pytest.mark.parametrize(
    ("number", "values"), [(1.7e308, [0.0, 5e-324]), (1.7e308, [1e308, -1e308]), (3.0, [2.0, 2.0])]
)
def test_differences_of_any_size_can_be_squared(number, values):
    with np.errstate(over="ignore"):  # as in `Optimizer`
        found = in_gaps(number, array(values))
    assert 0.0 < found <= 1e100


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8), LOG_STRENGTHS)
def test_what_was_compressed_can_be_brought_back(values, log_strength):
    y = array(values)
    t = compressed(gaps(y), log_strength)[0]
    np.testing.assert_allclose(from_compressed(t, log_strength, y), y, rtol=1e-9, atol=1e-9)


@given(st.floats(-3.0, 3.0), LOG_STRENGTHS)
def test_numbers_that_no_value_was_compressed_to_are_brought_back_by_the_same_formula(t, log_strength):
    # also below the best value, where the model may expect something
    y = array([5.0, 2.0, 3.0, 11.0])  # gaps 1, 3 and 9: their unit is 3
    with mpmath.workdps(40):
        strength = mpmath.exp(mpmath.mpf(log_strength))
        expected = 2 + 3 * (mpmath.exp(strength * mpmath.mpf(t)) - 1) / strength
    np.testing.assert_allclose(from_compressed(array([t]), log_strength, y), [float(expected)], rtol=1e-11, atol=1e-12)
