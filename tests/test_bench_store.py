"""The notebook of the lab."""

import dataclasses
import sqlite3

import numpy as np
import pytest

from cylbo.bench.store import Key, Run, Store, StoreError

RUN = Run(
    key=Key("levy", 20, 3, "paper", 0),
    status="finished",
    values=np.array([1.0 / 3.0, 1e300, -0.0]),
    seconds=np.array([0.25, 0.5, 1.0]),
    error="",
    time_limit=60.0,
    environment={"versions": {"numpy": "2.0"}, "cores": 2},
)


def same(a, b):
    return all(np.array_equal(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(Run))


def test_a_run_comes_back_bit_by_bit(tmp_path):
    with Store(tmp_path / "r.db") as store:
        store.add(RUN)
    with Store(tmp_path / "r.db", create=False) as store:
        (back,) = store.runs()
    assert same(back, RUN)
    assert np.signbit(back.values[2])


def test_runs_that_differ_in_their_batch_size_are_two_and_recommendations_come_back(tmp_path):
    noisy = dataclasses.replace(RUN, key=RUN.key._replace(batch=8), recommended=((10, 1.0 / 3.0), (20, -0.5)))
    with Store(tmp_path / "r.db") as store:
        store.add(RUN, noisy)
    with Store(tmp_path / "r.db") as store:
        assert [(run.key.batch, run.recommended) for run in store.runs()] == [(1, ()), (8, noisy.recommended)]


def test_a_file_from_before_there_were_batches_is_read_as_single_points(tmp_path):
    path = tmp_path / "r.db"
    with Store(path) as store:
        store.add(RUN)
    with sqlite3.connect(path) as earlier:
        earlier.execute(
            "CREATE TABLE old (problem, dim, budget, method, seed, status, 'values', seconds, error,"
            " time_limit, environment)"
        )
        earlier.execute(
            'INSERT INTO old SELECT problem, dim, budget, method, seed, status, "values", seconds, error,'
            " time_limit, environment FROM runs"
        )
        earlier.execute("DROP TABLE runs")
        earlier.execute("ALTER TABLE old RENAME TO runs")
    earlier.close()
    for _ in range(2):
        with Store(path, create=False) as store:
            assert same(store.runs()[0], RUN)


def test_values_that_are_no_numbers_come_back_too(tmp_path):
    odd = dataclasses.replace(RUN, values=np.array([np.nan, np.inf, -np.inf]))
    with Store(tmp_path / "r.db") as store:
        store.add(odd)
        np.testing.assert_array_equal(store.runs()[0].values, odd.values)


@pytest.mark.parametrize(
    ("values", "best"), [([3.0, 2.0], 2.0), ([np.nan, 2.0], 2.0), ([np.nan], np.nan), ([], np.nan), ([np.inf], np.inf)]
)
def test_the_best_leaves_out_what_is_no_number(values, best):
    np.testing.assert_equal(dataclasses.replace(RUN, values=np.array(values)).best, best)


def test_the_same_run_is_kept_once_and_the_later_one_wins(tmp_path):
    with Store(tmp_path / "r.db") as store:
        store.add(RUN)
        store.add(dataclasses.replace(RUN, status="failed"), dataclasses.replace(RUN, key=RUN.key._replace(seed=1)))
        assert [(run.key.seed, run.status) for run in store.runs()] == [(0, "failed"), (1, "finished")]


def test_runs_come_in_the_order_of_their_keys_whatever_the_order_of_writing(tmp_path):
    keys = [RUN.key._replace(seed=s, method=m) for s in (2, 0, 1) for m in ("tpe", "cma")]
    with Store(tmp_path / "r.db") as store:
        for key in keys:
            store.add(dataclasses.replace(RUN, key=key))
        assert [run.key for run in store.runs()] == sorted(keys)


def test_several_runs_are_added_all_or_none(tmp_path):
    broken = dataclasses.replace(RUN, key=RUN.key._replace(seed=1), status=None)
    with Store(tmp_path / "r.db") as store:
        with pytest.raises(sqlite3.IntegrityError):
            store.add(RUN, broken)
        assert store.runs() == []


def test_the_best_value_is_the_lowest_and_nan_without_any():
    assert RUN.best == 0.0
    assert np.isnan(dataclasses.replace(RUN, values=np.array([])).best)


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("not a database, but quite long enough to be taken for one" * 20)
    before = path.read_bytes()
    with pytest.raises(StoreError, match="not a file of `cylbo bench run`"):
        Store(path)
    assert path.read_bytes() == before


def test_another_programs_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE mine (x)")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program's"):
        Store(path)
    assert path.read_bytes() == before


def test_a_missing_file_names_the_command_that_makes_it(tmp_path):
    with pytest.raises(StoreError, match="cylbo bench run SUITE --out"):
        Store(tmp_path / "none.db", create=False)
    assert not (tmp_path / "none.db").exists()


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(StoreError, match=r"folder .*absent"):
        Store(tmp_path / "absent" / "r.db")
