"""A stored run gives the points it would have had, or says which release does: settings and code may change."""

import contextlib
import dataclasses
import json
import sqlite3

import pytest

import cylbo
from cylbo import methods
from test_storage import BOX, CHEAP, bits, bowl


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.db"


def run(path, budget, method="matern"):
    return cylbo.minimize(bowl, BOX, budget=budget, seed=0, method=method, storage=path, resume=True)


def header(path):
    with contextlib.closing(sqlite3.connect(path)) as db:
        return {name: json.loads(text) for name, text in db.execute("SELECT name, json FROM header")}


def rewrite(path, name, value):
    with contextlib.closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE header SET json = ? WHERE name = ?", [json.dumps(value), name])


@pytest.mark.parametrize("name", cylbo.METHODS)
def test_a_method_is_data_and_comes_back(name):
    method = cylbo.METHODS[name]
    assert methods.from_json(json.loads(json.dumps(methods.to_json(method)))) == method


def test_a_method_with_unknown_parts_or_fields_is_refused():
    data = methods.to_json(cylbo.DEFAULT)
    with pytest.raises(ValueError, match="kernel is 'Periodic', which is no part of this release"):
        methods.from_json({**data, "kernel": "Periodic"})
    with pytest.raises(ValueError, match="a method of this release has no ensemble"):
        methods.from_json({**data, "ensemble": 3})


def test_the_file_holds_the_whole_method_the_release_and_the_revision(path):
    run(path, 2)
    held = header(path)
    assert held["method"] == json.loads(json.dumps(methods.to_json(cylbo.METHODS["matern"])))
    assert (held["revision"], held["cylbo"], held["is_ours"]) == (1, cylbo.__version__, True)


def test_a_run_goes_on_with_the_settings_it_began_with(path, monkeypatch):
    calm = cylbo.minimize(bowl, BOX, budget=6, seed=0, method="matern")
    run(path, 3)
    changed = dataclasses.replace(cylbo.METHODS["matern"], n_starts=3, sweeps=2)
    monkeypatch.setitem(methods.METHODS, "matern", changed)
    assert bits(run(path, 6).trials) == bits(calm.trials)
    other = cylbo.minimize(bowl, BOX, budget=6, seed=0, method="matern")
    assert bits(other.trials) != bits(calm.trials)


@pytest.mark.parametrize("method", ["matern", CHEAP], ids=["ours", "the user's"])
def test_a_run_of_another_revision_is_refused_and_left_as_it_is(path, monkeypatch, method):
    run(path, 3, method)
    before = path.read_bytes()
    monkeypatch.setitem(methods.REVISIONS, "matern", 2)
    message = (
        f"had revision 1 in release {cylbo.__version__}; this release, {cylbo.__version__}, has revision 2 and would "
        rf"suggest other points. Go on with cylbo=={cylbo.__version__}, or begin another run with trials=cylbo.load"
    )
    with pytest.raises(cylbo.StorageError, match=message):
        run(path, 5, method)
    assert path.read_bytes() == before
    assert len(cylbo.load(path).trials) == 3
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_a_method_of_the_users_under_a_name_of_ours_is_another_one(path):
    mine = dataclasses.replace(cylbo.METHODS["matern"], n_starts=3, sweeps=2)
    run(path, 3, mine)
    with pytest.raises(cylbo.StorageError, match="another method"):
        run(path, 5, "matern")
    assert run(path, 5, mine).nfev == 5


def scaled(values):
    return values


def test_a_method_with_a_part_of_the_users_own_is_known_by_its_name(path):
    mine = dataclasses.replace(cylbo.METHODS["matern"], name="mine", scaling=scaled, sweeps=2)
    run(path, 3, mine)
    assert run(path, 4, mine).nfev == 4
    with pytest.raises(cylbo.StorageError, match="another method"):
        run(path, 5, dataclasses.replace(mine, sweeps=3))
    assert cylbo.load(path).success


def test_a_newer_file_whose_method_this_release_does_not_know_is_refused(path):
    run(path, 3)
    rewrite(path, "method", {**header(path)["method"], "ensemble": 3})
    with pytest.raises(cylbo.StorageError, match="another method"):
        run(path, 5)
    assert cylbo.load(path).nfev == 3
