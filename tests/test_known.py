"""What is known, against Python's own sorting, sets and loops."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cylbo.search.data import Known, representative

NAN = math.nan
SMALL = st.integers(-2, 2).map(float)


def known(x, y, **more):
    x = np.array(x, dtype=float)
    arrays = {name: np.array(part) if isinstance(part, list) else part for name, part in more.items()}
    return Known(**{"x": x, "y": np.array(y, dtype=float), "pending": x[:0], "failed": x[:0], **arrays})


def on_a_line(y, **more):
    return known(np.arange(len(y))[:, None] / 10.0, y, **more)


# ---- constraints


@pytest.mark.parametrize(
    ("constraints", "allowed"),
    [
        ([[-1.0], [0.0], [1e-300]], [True, True, False]),  # met where <= 0
        ([[-1.0, 2.0], [2.0, -1.0], [-1.0, -2.0]], [False, False, True]),  # all of them
        ([[NAN, NAN], [1.0, -1.0], [NAN, NAN]], [True, False, True]),  # what was not told is not broken
    ],
)
def test_a_point_is_allowed_if_it_keeps_every_constraint_that_was_told(constraints, allowed):
    assert on_a_line([1.0, 2.0, 3.0], constraints=constraints).allowed.tolist() == allowed


def test_without_constraints_every_point_is_allowed_and_the_least_value_comes_first():
    data = on_a_line([3.0, 1.0, 2.0, 1.0])
    assert data.allowed.tolist() == [True] * 4
    assert data.order.tolist() == [1, 3, 2, 0]


@given(
    st.integers(1, 3).flatmap(
        lambda m: st.lists(st.tuples(SMALL, st.lists(SMALL, min_size=m, max_size=m)), min_size=1, max_size=9)
    )
)
def test_points_are_ordered_by_value_while_they_are_allowed_and_then_by_how_much_they_are_not(rows):
    values, constraints = [y for y, _ in rows], [c for _, c in rows]
    scales = [max(max(map(abs, column)), 1e-300) for column in zip(*constraints, strict=True)]

    def key(i):
        excess = sum(max(c, 0.0) / scale for c, scale in zip(constraints[i], scales, strict=True))
        return excess, values[i]

    found = on_a_line(values, constraints=constraints).order.tolist()
    assert sorted(found) == list(range(len(rows)))
    keys = [key(i) for i in found]
    for (a, y), (b, z) in itertools.pairwise(keys):
        assert a <= b + 1e-12  # sums of the same numbers may round differently
        assert a < b - 1e-12 or y <= z


def test_no_constraint_counts_more_for_being_in_a_larger_unit():
    # by half, by 0.6 and by all of the worst that was seen of each
    data = on_a_line([0.0] * 3, constraints=[[1e6, -1e-6], [5e5, -1e-6], [-1.0, 0.6e-6]])
    assert data.order.tolist() == [1, 2, 0]


def test_points_of_unknown_constraints_are_ordered_as_allowed():
    data = on_a_line([5.0, 1.0, 3.0, 0.0], constraints=[[NAN], [-1.0], [NAN], [2.0]])
    assert data.order.tolist() == [1, 2, 0, 3]


# ---- noise


@pytest.mark.parametrize(
    ("noise", "told"),
    [([], None), ([NAN] * 3, None), ([NAN, 0.5, NAN], [0.0, 0.5, 0.0]), ([0.0, 0.0, NAN], [0.0, 0.0, 0.0])],
)
def test_noise_that_was_not_told_is_none_beside_noise_that_was(noise, told):
    found = on_a_line([1.0, 2.0, 3.0], noise=noise).told_noise
    assert (found if told is None else found.tolist()) == told


DIFFERENT, TWICE = [[0.0], [0.1], [0.2]], [[0.0], [0.1], [0.0]]


@pytest.mark.parametrize(
    ("x", "y", "more", "settled", "noisy"),
    [
        (DIFFERENT, [1, 2, 3], {}, False, False),
        (TWICE, [1, 2, 1], {}, True, False),  # a point was looked at twice and gave the same
        (TWICE, [1, 2, 1 + 1e-15], {}, True, True),
        ([[0.0], [0.1], [1e-300]], [1, 2, 3], {}, False, False),  # next to it is not the same
        (DIFFERENT, [1, 2, 3], {"exact": True}, True, False),
        (DIFFERENT, [1, 2, 3], {"exact": False}, True, True),
        (TWICE, [1, 2, 3], {"exact": True}, True, False),  # what was said counts more than what was seen
        (TWICE, [1, 2, 1], {"exact": False}, True, True),
        (DIFFERENT, [1, 2, 3], {"noise": [NAN, 0.1, NAN]}, True, True),
        (DIFFERENT, [1, 2, 3], {"noise": [0.0, 0.0, 0.0]}, True, False),
        (DIFFERENT, [1, 2, 3], {"noise": [NAN, NAN, NAN]}, False, False),
        (DIFFERENT, [1, 2, 3], {"noise": [0.1] * 3, "exact": True}, True, False),
        (np.empty((0, 1)), [], {}, False, False),
    ],
)
def test_what_is_known_of_noise(x, y, more, settled, noisy):
    data = known(x, y, **more)
    assert (data.settled, data.noisy) == (settled, noisy)


# ---- fewer data


@given(st.permutations(range(17)), st.integers(1, 20))
def test_a_representative_part_is_half_the_best_and_half_evenly_from_the_rest(order, count):
    found = representative(np.array(order), count).tolist()
    assert found == sorted(set(found))  # as they were evaluated
    assert len(found) == min(17, count)
    if count >= 17:
        return
    best, rest = order[: count // 2], order[count // 2 :]
    assert set(best) <= set(found)
    ranks = sorted(rest.index(i) for i in set(found) - set(best))
    assert ranks[0] == 0
    assert len(ranks) == 1 or ranks[-1] == len(rest) - 1
    gaps = np.diff(ranks)
    assert len(gaps) == 0 or max(gaps) - min(gaps) <= 1


def many(n=30, failed=12):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, (n + failed + 2, 2))
    return Known(
        x[:n],
        rng.standard_normal(n),
        pending=x[n + failed :],
        failed=x[n : n + failed],
        noise=rng.random(n),
        constraints=rng.standard_normal((n, 2)),
        failed_lately=0.3,
    )


def test_enough_room_leaves_everything_as_it_is():
    data = many(failed=5)
    assert data.thinned(30) is data
    assert data.thinned(100) is data
    few = known([[0.0]], [1.0])
    assert few.thinned(1) is few


@pytest.mark.parametrize("count", [1, 2, 7, 29])
def test_thinned_data_are_some_of_the_data_with_all_that_belongs_to_them(count):
    data = many()
    thin = data.thinned(count)
    where = [int(np.flatnonzero((data.x == x).all(-1))[0]) for x in thin.x]
    assert where == representative(data.order, count).tolist()
    for name in ("y", "noise", "constraints"):
        assert np.array_equal(getattr(thin, name), getattr(data, name)[where])
    n_failed = min(12, max(1, count // 2))
    assert np.array_equal(thin.failed, data.failed[12 - n_failed :])  # the last
    assert np.array_equal(thin.pending, data.pending)
    assert thin.failed_lately == data.failed_lately
    together = np.concatenate([thin.x, thin.failed, thin.left_out])
    assert sorted(map(tuple, together)) == sorted(map(tuple, np.concatenate([data.x, data.failed])))


def test_failures_alone_may_be_too_many():
    thin = many(n=5, failed=12).thinned(8)
    assert (len(thin.y), len(thin.failed), len(thin.left_out)) == (5, 4, 8)


def test_without_noise_and_constraints_thinned_data_have_none():
    thin = on_a_line(range(9)).thinned(4)
    assert (thin.noise.size, thin.constraints.size, thin.told_noise) == (0, 0, None)
    assert thin.allowed.all()


@pytest.mark.parametrize(("again", "settled", "noisy"), [(4.0, True, False), (4.5, True, True), (None, False, False)])
def test_whether_values_are_noisy_is_known_from_the_points_that_there_is_no_room_for_too(again, settled, noisy):
    data = on_a_line(range(10))
    if again is not None:
        data = known(np.append(data.x, data.x[4:5], 0), np.append(data.y, again))
    thin = data.thinned(2)
    assert thin.y.tolist() == [0.0, 1.0]
    assert (thin.settled, thin.noisy) == (settled, noisy)


# ---- which point it is, and whether it is a new one


def test_a_point_is_found_by_its_bits_and_the_first_of_equals():
    data = known([[0.1, 0.2], [0.3, 0.4], [0.3, 0.4], [0.1, 0.4]], [1, 2, 3, 4])
    assert [data.index(x) for x in data.x] == [0, 1, 1, 3]
    assert data.index(data.x[1].copy()) == 1


def test_a_point_is_new_if_it_differs_from_all_others_in_some_coordinate():
    data = Known(np.array([[0.1, 0.2]]), np.ones(1), pending=np.array([[0.3, 0.4]]), failed=np.array([[0.5, 0.6]]))
    ball = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6], [0.1, 0.4], [0.1, 0.2 + 1e-8], [0.1 + 1e-12, 0.2]])
    assert data.is_new(ball).tolist() == [False, False, False, True, True, False]
    # an evaluated point may be looked at again, one that is open or failed may not
    assert data.is_new(ball, repeat=True).tolist() == [True, False, False, True, True, True]
    assert data.is_new(ball[:0]).tolist() == []


def test_points_that_there_is_no_room_for_are_not_new():
    data = on_a_line(range(10), failed=[[1.0], [1.1]])
    thin = data.thinned(2)
    assert (len(thin.y), len(thin.failed)) == (2, 1)
    assert not thin.is_new(np.concatenate([data.x, data.failed])).any()


def test_a_point_may_be_looked_at_again_though_there_was_no_room_for_one_of_its_values():
    data = known(np.append(np.arange(10.0), 0.0)[:, None], np.append(np.arange(10.0), 4.5))
    thin = data.thinned(2)
    assert 0.0 in thin.x
    assert 0.0 in thin.left_out
    assert thin.is_new(np.zeros((1, 1)), repeat=True).tolist() == [True]
    assert thin.is_new(np.zeros((1, 1))).tolist() == [False]


# ---- disappointment


@pytest.mark.parametrize(
    ("surprises", "disappointed"),
    [
        ([0.76] * 10, True),
        ([0.74] * 10, False),
        ([3.0] * 9, False),  # too few to tell
        ([0.0] * 10 + [3.0] * 10, False),  # the first ten count
        ([3.0] * 10 + [-9.0] * 10, True),
        ([100.0] + [0.0] * 9, False),  # no blow counts for more than 3 ...
        ([3.0] * 3 + [0.0] * 7, True),
        ([-100.0] + [1.0] * 9, True),  # ... and no luck for more than -1
        ([-100.0] * 2 + [1.0] * 8, False),
    ],
)
def test_a_model_disappoints_if_its_first_ten_suggestions_come_out_plainly_worse_than_predicted(
    surprises, disappointed
):
    data = on_a_line(range(40), surprises=surprises)
    assert data.disappointed is disappointed
    assert data.thinned(5).disappointed is disappointed
