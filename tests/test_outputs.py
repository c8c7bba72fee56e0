import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cylbo.outputs import raw, standardized

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


@pytest.mark.parametrize("scaling", [raw, standardized])
def test_values_are_not_modified(scaling):
    y = array([1e200, 2.0, -3.0])
    before = y.copy()
    scaled = scaling(y)
    assert scaled.dtype == np.float64
    assert np.array_equal(y, before)
