"""A stored run: is it the one that the caller means, and how it goes on in a larger space."""

import dataclasses
import json
import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cylbo.errors import StorageError
from cylbo.methods import stored_method, to_json
from cylbo.record.trial import Trial
from cylbo.search.memory import Memory
from cylbo.space.box import Box
from cylbo.space.named import Frame
from cylbo.store.codec import FORMAT, Header
from cylbo.types import Array

__all__ = ["Stored", "Waiting", "recognised"]


class Waiting(NamedTuple):
    """A point that the user wants to be asked."""

    id: int
    x: Array  # (d,) in user units


class Stored(NamedTuple):
    """All that a file holds."""

    header: Header
    space: Box | Frame  # the one that the header describes
    trials: list[Trial]
    memory: Memory = Memory()
    waiting: Sequence[Waiting] = ()
    format: int = FORMAT

    def carried_over(self, space: Box | Frame) -> "Stored":
        """The run in a space that contains its own, seen from its own centre; ValueError says why it does not.

        It is this very run where nothing changes. Otherwise its memory, which belongs to old coordinates, is left
        behind.
        """
        x0 = self.header["x0"]
        old = np.array(
            [self.space.center, *x0, *(wanted.x for wanted in self.waiting), *(trial.x for trial in self.trials)]
        )
        points = space.carried_over(self.space, old)
        points.flags.writeable = False
        now = space.centered(points[0])
        if json.dumps(now.to_json()) == json.dumps(self.header["space"]):
            return self
        given, wanted, asked = np.split(points[1:], [len(x0), len(x0) + len(self.waiting)])
        trials = [
            dataclasses.replace(trial, x=x, to_params=now.params) for trial, x in zip(self.trials, asked, strict=True)
        ]
        waiting = [Waiting(old.id, x) for old, x in zip(self.waiting, wanted, strict=True)]
        header = {**self.header, "space": now.to_json(), "x0": given.tolist()}
        return Stored(header, now, trials, waiting=waiting, format=self.format)


def recognised(path: Path, stored: Stored, run: Stored, given: Collection[str]) -> Stored:
    """The stored run in the caller's space, if it is the run that the caller means."""
    try:
        there = stored.carried_over(run.space)
    except ValueError as error:
        raise StorageError(f"{path} holds a run with another space: {error}, or choose another file.") from error
    _check_method(path, there.header, run.header)
    begun, called = (
        {**each.header, "center": each.header["space"]["center"], "trials": _told(each.trials)} for each in (there, run)
    )
    for name in given:
        _check_same(path, name, begun[name], called[name])
    return there


def _check_method(path: Path, begun: Header, called: Header) -> None:
    """Raise StorageError unless the run goes on with the method it began with, and with the same points.

    The settings of a method that has a name may change from one release to the next: then a run goes on with those it
    began with, which the file holds. Code that suggests other points has another revision, and is refused.
    """
    try:
        method, meant = stored_method(begun["method"]), stored_method(called["method"])
    except ValueError:
        # Parts of the user's own, which are compared by their names
        _check_same(path, "method", begun["method"], called["method"])
    else:
        are_ours = begun.get("is_ours", isinstance(begun["method"], str)) and called["is_ours"]
        if method.name != meant.name:
            _check_same(path, "method", method.name, meant.name)
        if not are_ours:
            _check_same(path, "method", to_json(method), to_json(meant))
    # Release 0.1 had the first revision of every method
    was, now, release = begun.get("revision", 1), called["revision"], begun.get("cylbo", "0.1.0")
    if was != now:
        raise StorageError(
            f"{path} holds a run whose method had revision {was} in release {release}; this release, "
            f"{called['cylbo']}, has revision {now} and would suggest other points. Go on with cylbo=={release}, or "
            f"begin another run with trials=cylbo.load({str(path)!r}).trials."
        )


def _check_same(path: Path, name: str, begun: object, called: object) -> None:
    """Raise StorageError if something is not as the run began; as text, where 1 is not True."""
    was, here = json.dumps(begun), json.dumps(called)
    if was != here:
        was, here = _where_they_differ(was, here)
        raise StorageError(
            f"{path} holds a run with another {name}: {was}, not {here}; go on with what the run began with, or choose "
            "another file."
        )


def _told(trials: Sequence[Trial]) -> list[object]:
    """The evaluations that a run began with, as JSON."""
    return [
        [trial.x.tolist(), trial.value, trial.status, trial.std, trial.constraints, trial.reason, trial.metadata]
        for trial in trials
        if trial.origin == "told"
    ]


def _where_they_differ(*texts: str) -> list[str]:
    """Each text, cut to where they begin to differ if it is long."""
    begin = max(0, len(os.path.commonprefix(texts)) - 30)  # noqa: RUF071 - by character is what is wanted
    return [
        text if len(text) <= 60 else "..." * (begin > 0) + text[begin : begin + 60] + "..." * (len(text) > begin + 60)
        for text in texts
    ]
