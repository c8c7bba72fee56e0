"""Ranks, Friedman's test and Nemenyi's critical difference against SciPy, Demsar's table and examples by hand."""

import numpy as np
import pytest
from scipy import stats

from cylbo.bench.statistics import Comparison, compare, critical_difference, friedman_p_value, lowest_and_level, ranks


def losses(seed, n, k, ties=False):
    table = np.random.default_rng(seed).normal(size=(n, k)) + 0.3 * np.arange(k)
    return np.round(table) if ties else table


def table(rows):
    """method -> problem -> loss, from rows of a table."""
    return {method: dict(enumerate(row)) for method, row in rows.items()}


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_ranks_and_friedman_agree_with_scipy(seed, ties):
    values = losses(seed, n=7, k=5, ties=ties)
    assert ranks(values).tolist() == [stats.rankdata(row).tolist() for row in values]
    expected = stats.friedmanchisquare(*values.T).pvalue
    assert friedman_p_value(values) == pytest.approx(expected, rel=1e-10)


def test_equal_losses_share_their_ranks():
    assert ranks(np.array([[2.0, 1.0, 2.0, 5.0]])).tolist() == [[2.5, 1.0, 2.5, 4.0]]


def test_methods_that_never_differ_have_a_p_value_of_one():
    assert friedman_p_value(np.ones((4, 3))) == 1.0


def test_two_methods_are_compared_by_the_signs():
    """With k = 2 Friedman's statistic is (wins - losses)^2 / n, a squared normal number."""
    values = np.array([[0.0, 1.0]] * 8 + [[1.0, 0.0]] * 2)
    assert friedman_p_value(values) == pytest.approx(2 * stats.norm.sf(6 / np.sqrt(10)), rel=1e-10)


@pytest.mark.parametrize(("k", "q"), [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (10, 3.164)])
def test_the_critical_difference_uses_the_quantiles_printed_by_demsar(k, q):
    """Demsar 2006, Table 5 (a), three decimals; 2.343 is cut there, not rounded (2.3437)."""
    n = 11
    assert critical_difference(k, n) == pytest.approx(q * np.sqrt(k * (k + 1) / (6 * n)), rel=4e-4)


def test_demsars_own_example():
    """Sec. 3.2.2: with four methods over 14 data sets the critical difference at 0.05 is 1.25."""
    assert critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)


def test_methods_are_sorted_by_average_rank_and_equal_ones_stay_in_order():
    found = compare(table({"c": [3, 3, 1], "b": [1, 1, 3], "a": [2, 2, 2], "z": [9, 9, 9]}))
    assert found is not None
    assert found.methods == ("b", "a", "c", "z")
    assert found.mean_ranks == pytest.approx((5 / 3, 2.0, 7 / 3, 4.0))
    assert found.median_ranks == (1.0, 2.0, 3.0, 4.0)
    tied = compare(table({"y": [1, 2], "x": [2, 1]}))
    assert tied is not None
    assert tied.methods == ("y", "x")


@pytest.mark.parametrize("rows", [{}, {"a": [1, 2]}, {"a": [1], "b": [2]}])
def test_it_takes_two_methods_and_two_problems(rows):
    assert compare(table(rows)) is None


def comparison(*mean_ranks, difference):
    names = tuple("abcdefgh"[: len(mean_ranks)])
    return Comparison(names, mean_ranks, mean_ranks, 10, p_value=0.01, critical_difference=difference)


def test_groups_are_the_largest_runs_of_methods_closer_than_the_critical_difference():
    assert comparison(1.0, 2.0, 3.5, 4.0, 9.0, difference=2.1).groups == [(0, 1), (1, 3)]
    assert comparison(1.0, 2.0, 3.0, difference=5.0).groups == [(0, 2)]
    assert comparison(1.0, 3.0, 6.0, difference=1.5).groups == []


def test_a_difference_of_exactly_the_critical_one_is_significant():
    """Demsar: "if the corresponding average ranks differ by at least the critical difference"."""
    found = comparison(1.0, 2.0, 2.5, difference=1.5)
    assert found.like_the_best == ("b",)
    assert comparison(1.0, 2.0, difference=0.5).like_the_best == ()


def test_a_method_is_level_if_its_mean_is_within_two_standard_errors_of_the_difference():
    """Sample variances 2 and 2 over two runs each: the standard error is sqrt(1 + 1), twice that is 2.83."""
    best = np.array([0.0, 2.0])
    found = lowest_and_level({"far": best + 2.9, "near": best + 2.8, "best": best}, np.mean)
    assert found == ("best", "near")


def test_standard_errors_are_those_of_welchs_test():
    a, b = losses(3, n=5, k=2, ties=False).T
    error = abs((a.mean() - b.mean()) / stats.ttest_ind(a, b, equal_var=False).statistic)
    shift = a.mean() - b.mean() + 2.0 * error
    assert lowest_and_level({"a": a, "b": b + shift - 1e-9}, np.mean) == ("a", "b")
    assert lowest_and_level({"a": a, "b": b + shift + 1e-9}, np.mean) == ("a",)


def test_equal_runs_are_level_and_a_single_run_is_not_compared():
    same = np.full(3, 2.35)
    assert lowest_and_level({"a": same, "b": same, "one": np.array([-9.0])}, np.median) == ("a", "b")
    assert lowest_and_level({"one": np.array([1.0])}, np.median) == ()


def test_the_lowest_is_the_one_by_the_number_shown():
    """The median of the first is lower, its mean is not."""
    runs = {"first": np.array([0.0, 0.0, 90.0]), "second": np.array([1.0, 1.0, 1.0])}
    assert lowest_and_level(runs, np.median)[0] == "first"
    assert lowest_and_level(runs, np.mean)[0] == "second"
