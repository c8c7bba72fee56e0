"""What counts as a number."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from cylbo.checks import as_float, is_integer, is_real


@pytest.mark.parametrize("value", [0, -3, 10**400, np.int8(1), np.uint64(2**63)])
def test_integers(value):
    assert is_integer(value)
    assert is_real(value)


@pytest.mark.parametrize("value", [1.0, np.float32(2.0), Fraction(1, 3), float("nan")])
def test_other_numbers(value):
    assert is_real(value)
    assert not is_integer(value)


@pytest.mark.parametrize("value", [True, np.True_, None, "1", 1j, [1], np.array(1), Decimal(1)])
def test_no_numbers(value):
    assert not is_integer(value)
    assert not is_real(value)


@pytest.mark.parametrize("sign", [-1, 1])
def test_an_integer_too_large_for_a_float_is_infinite(sign):
    assert as_float(sign * 10**400) == sign * np.inf
    assert as_float(sign * 10**300) == sign * 1e300
    assert as_float(Fraction(sign, 4)) == sign * 0.25
