import numpy as np
import pytest

from cylbo.errors import CylboError, NotPositiveDefiniteError
from cylbo.numerics.linalg import cholesky, inverse_lower, solve_lower


def positive_definite(n, seed=0):
    A = np.random.default_rng(seed).standard_normal((n, n))
    return A @ A.T + n * np.eye(n)


@pytest.mark.parametrize("n", [1, 2, 7, 60])
def test_factor_is_that_of_numpy_and_no_jitter_is_added(n):
    K = positive_definite(n)
    before = K.copy()
    L, jitter = cholesky(K, 0.0, (1e-6,))
    assert jitter == 0.0
    np.testing.assert_allclose(np.tril(L), np.linalg.cholesky(K), rtol=1e-12, atol=1e-14)
    assert np.array_equal(K, before)  # arguments are never modified


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_smallest_sufficient_rung_is_taken_relative_to_the_first_diagonal_entry(scale):
    """diag(2, -3e-5): a jitter of 2e-6, then 2e-5 do not help, 2e-4 does."""
    K = scale * np.diag([2.0, -3e-5])
    L, jitter = cholesky(K, 0.0, (1e-6, 1e-5, 1e-4, 1e-3))
    assert jitter == pytest.approx(2e-4 * scale)
    np.testing.assert_allclose(np.tril(L) @ np.tril(L).T, K + jitter * np.eye(2), rtol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 30])
def test_every_point_may_have_a_nugget_of_its_own(n):
    K, nugget = positive_definite(n), np.random.default_rng(n).gamma(1.0, size=n)
    copies = K.copy(), nugget.copy()
    L, jitter = cholesky(K, nugget, (1e-6,))
    assert jitter == 0.0
    np.testing.assert_allclose(np.tril(L), np.linalg.cholesky(K + np.diag(nugget)), rtol=1e-12, atol=1e-14)
    assert np.array_equal(K, copies[0])
    assert np.array_equal(nugget, copies[1])


def test_a_large_nugget_of_one_point_does_not_make_the_jitter_large():
    """As above, with a first point that is known to be noisy: the rungs are still relative to the others."""
    K, nugget = np.diag([2.0, -3e-5]), np.array([1e6, 0.0])
    L, jitter = cholesky(K, nugget, (1e-6, 1e-5, 1e-4, 1e-3))
    assert jitter == pytest.approx(2e-4)
    np.testing.assert_allclose(np.tril(L) @ np.tril(L).T, K + np.diag(nugget + jitter), rtol=1e-12)


def test_matrix_beyond_the_last_rung_is_refused_and_the_message_names_the_knob():
    with pytest.raises(NotPositiveDefiniteError, match="raise `stabilizer` in the configuration"):
        cholesky(np.diag([1.0, -1.0]), 0.0, (1e-6, 1e-1))
    assert issubclass(NotPositiveDefiniteError, CylboError)
    assert issubclass(NotPositiveDefiniteError, ArithmeticError)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("where", [(0, 0), (1, 1), (2, 1)])
def test_nan_and_infinity_are_refused(bad, where):
    K = positive_definite(3)
    K[where] = K[where[::-1]] = bad
    with pytest.raises(NotPositiveDefiniteError):
        cholesky(K, 0.0, (1e-6,))


@pytest.mark.parametrize("n", [0, 1, 5, 40])
def test_triangular_solves_undo_the_factor_and_ignore_its_upper_triangle(n):
    rng = np.random.default_rng(n)
    K = positive_definite(n, n)
    L, _ = cholesky(K, 0.0, ())
    L = np.asfortranarray(np.tril(L) + 1e3 * np.triu(np.ones((n, n)), 1))
    b = rng.standard_normal((n, 3))
    lower = np.tril(L)
    np.testing.assert_allclose(lower @ solve_lower(L, b), b, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(lower.T @ solve_lower(L, b, transposed=True), b, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(lower @ inverse_lower(L), np.eye(n), atol=1e-12)
    assert np.array_equal(inverse_lower(L), np.tril(inverse_lower(L)))


def test_whitening_with_the_inverse_factor_is_as_accurate_as_a_solve_on_a_bad_matrix():
    """1e6 of condition from a stabiliser of 1e-6, as in the authors' code."""
    t = np.linspace(0.0, 1.0, 40)
    K = np.exp(-0.5 * (t[:, None] - t) ** 2) + 1e-6 * np.eye(40)
    L, _ = cholesky(K, 0.0, ())
    b = np.sin(5.0 * t)[:, None]
    expected = b.T @ np.linalg.solve(K, b)
    np.testing.assert_allclose(np.linalg.norm(inverse_lower(L) @ b) ** 2, expected[0, 0], rtol=1e-8)


@pytest.mark.parametrize("n", [0, 1, 5])
def test_nugget_is_added_to_the_diagonal_and_does_not_count_as_jitter(n):
    K = positive_definite(n, n)
    before = K.copy()
    L, jitter = cholesky(K, 0.25, (1e-6,))
    assert jitter == 0.0
    np.testing.assert_allclose(np.tril(L) @ np.tril(L).T, K + 0.25 * np.eye(n), rtol=1e-12, atol=1e-13)
    assert np.array_equal(K, before)


def test_rungs_are_relative_to_the_first_diagonal_entry_with_its_nugget():
    """diag(2, -1.00003) with a nugget of 1 lacks 3e-5, a hundred-thousandth of the first entry 3."""
    K = np.diag([2.0, -1.00003])
    L, jitter = cholesky(K, 1.0, (1e-6, 0.99e-5, 1e-4))
    assert jitter == pytest.approx(3e-4)
    np.testing.assert_allclose(np.tril(L) @ np.tril(L).T, K + (1.0 + jitter) * np.eye(2), rtol=1e-9, atol=1e-15)
    assert cholesky(K, 1.0, (1e-6, 1.01e-5, 1e-4))[1] == pytest.approx(3.03e-5)


def test_nugget_that_is_not_a_number_or_infinite_is_refused():
    for nugget in (np.nan, np.inf):
        with pytest.raises(NotPositiveDefiniteError):
            cholesky(np.eye(3), nugget, (1e-6,))


def test_matrix_is_not_modified_on_the_way_up_the_ladder_nor_by_a_solve():
    K = np.diag([2.0, -3e-5])
    before = K.copy()
    L, _ = cholesky(K, 0.0, (1e-6, 1e-5, 1e-4))
    b = np.ones((2, 3))
    factor = L.copy()
    solve_lower(L, b), solve_lower(L, b, transposed=True), inverse_lower(L)
    assert np.array_equal(K, before)
    assert np.array_equal(L, factor)
    assert (b == 1.0).all()


def test_without_rungs_a_singular_matrix_is_refused():
    with pytest.raises(NotPositiveDefiniteError, match="jitter of up to 0 of the diagonal"):
        cholesky(np.ones((2, 2)) - np.diag([0.0, 1e-3]), 0.0, ())
