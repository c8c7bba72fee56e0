"""What the lab asks of Additive and Elastic BO alike: better than Sobol, repeatable, no harm from odd values."""

import numpy as np
import pytest

from lab import best, off_center


@pytest.mark.parametrize(("name", "share"), [("additive-1", 0.7), ("additive-2", 0.7), ("elastic", 0.3)])
def test_it_beats_sobol_away_from_the_centre(name, share):
    found, _ = best(name, off_center, 10, 40)
    reference, _ = best("sobol", off_center, 10, 40)
    assert found < share * reference


@pytest.mark.parametrize(("name", "budget"), [("additive-2", 18), ("elastic", 12)])
def test_the_same_seed_gives_the_same_points(name, budget):
    (_, first), (_, again), (_, other) = (best(name, off_center, 4, budget, seed) for seed in (6, 6, 7))
    np.testing.assert_array_equal(first, again)
    assert (first[1:] != other[1:]).any()


@pytest.mark.parametrize(("name", "dim", "budget"), [("additive-4", 6, 16), ("elastic", 4, 14)])
@pytest.mark.parametrize(
    "function",
    [lambda _: 3.0, lambda x: 1e300 * np.sign(x[0]), lambda x: 1e-300 * x[0], lambda x: float(x[0] > 0.5)],
    ids=["constant", "huge", "tiny", "steps"],
)
def test_odd_values_do_no_harm(function, name, dim, budget):
    best(name, function, dim, budget)
