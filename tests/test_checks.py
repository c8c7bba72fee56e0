"""What counts as a number, and what as a truth value."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import torch

from cylbo.space.checks import as_float, as_integer, as_scalar, checked_flag, is_integer, is_real


@pytest.mark.parametrize("value", [0, -3, 10**400, np.int8(1), np.uint64(2**63)])
def test_integers(value):
    assert is_integer(value)
    assert is_real(value)


@pytest.mark.parametrize("value", [1.0, np.float32(2.0), Fraction(1, 3), float("nan")])
def test_other_numbers(value):
    assert is_real(value)
    assert not is_integer(value)


@pytest.mark.parametrize(
    "value", [True, np.True_, None, "1", 1j, [1], np.array(1), Decimal(1), np.timedelta64(1, "ns")]
)
def test_no_numbers(value):
    assert not is_integer(value)
    assert not is_real(value)


@pytest.mark.parametrize("sign", [-1, 1])
def test_an_integer_too_large_for_a_float_is_infinite(sign):
    assert as_float(sign * 10**400) == sign * np.inf
    assert as_float(sign * 10**300) == sign * 1e300
    assert as_float(Fraction(sign, 4)) == sign * 0.25


@pytest.mark.parametrize("value", [3, 3.0, np.int8(3), np.float16(3), np.longdouble(3)])
def test_a_float_without_a_fraction_is_an_integer_too(value):
    assert as_integer(value) == 3
    assert type(as_integer(value)) is int
    assert as_integer(-value) == -3


def test_large_integers_keep_every_digit():
    assert as_integer(2**80 + 1) == 2**80 + 1
    assert as_integer(1e22) == 10**22


@pytest.mark.parametrize(
    "value",
    [
        1.5, np.nan, np.inf, -np.inf, np.float32("nan"), True, np.True_, None, "3", 3 + 0j, [3], np.array(3.0),
        Fraction(3), Decimal(3), np.timedelta64(3, "ns"),
    ],
)  # fmt: skip
def test_everything_else_is_no_integer(value):
    assert as_integer(value) is None


ONE_ENTRY = [
    np.array(2.5), np.array([2.5]), np.array([[2.5]]), np.float32(2.5), np.ma.array([2.5]), np.array([2.5], object),
    torch.tensor(2.5), torch.tensor([2.5]), torch.tensor([[2.5]], requires_grad=True), pd.Series([2.5]),
    pd.Series([2.5], index=["a"]),
]  # fmt: skip


@pytest.mark.parametrize("value", ONE_ENTRY, ids=lambda value: f"{type(value).__name__}{np.shape(value)}")
def test_the_entry_of_an_array_of_one_is_plain_python(value):
    assert as_scalar(value) == 2.5
    assert type(as_scalar(value)) is float


def test_the_entry_of_a_jax_array_is_plain_python():
    jnp = pytest.importorskip("jax.numpy")
    assert as_scalar(jnp.array([2.5])) == 2.5
    assert type(as_scalar(jnp.array(2.5))) is float


@pytest.mark.parametrize(
    "value",
    [
        2.5, "2.5", None, [2.5], {"item": 1}, np.zeros(2), np.empty(0), torch.zeros(2), pd.Series([1.0, 2.0]),
        np.ma.masked, np.ma.array([2.5], mask=[True]), np.array([5], "M8[ns]"), np.timedelta64(5, "ns"),
    ],
    ids=lambda value: f"{type(value).__name__}{value}",
)  # fmt: skip
def test_everything_else_stays_as_it_is(value):
    assert as_scalar(value) is value


@pytest.mark.parametrize("value", [True, False, np.True_, np.False_])
def test_true_and_false_are_flags(value):
    assert checked_flag(value, "log") is bool(value)


@pytest.mark.parametrize("value", ["True", "no", "", 1, 0, 1.0, None, [], np.array(True)])
def test_what_is_only_as_good_as_true_or_false_is_no_flag(value):
    with pytest.raises(TypeError, match=r"^log must be True or False, got .*\.$"):
        checked_flag(value, "log")
