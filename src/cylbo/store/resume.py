"""A stored run: is it the one that the caller means, and how it goes on in a larger space."""

import dataclasses
import json
import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cylbo.errors import StorageError
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
    begun, called = (
        {
            **each.header,
            "center": each.header["space"]["center"],
            "trials": _told(each.trials),
            "method": _without_modules(each.header["method"]),
        }
        for each in (there, run)
    )
    for name in given:
        was, here = json.dumps(begun[name]), json.dumps(called[name])
        if was != here:  # as text: 1 is not True there
            was, here = _where_they_differ(was, here)
            raise StorageError(
                f"{path} holds a run with another {name}: {was}, not {here}; go on with what the run began with, or "
                "choose another file."
            )
    return there


def _without_modules(method: object) -> object:
    """A method as JSON; release 0.1 wrote the names of its parts with those of their modules."""
    if isinstance(method, dict):
        return {name: _without_modules(part) for name, part in method.items()}
    if isinstance(method, list):
        return [_without_modules(part) for part in method]
    return method.rpartition(".")[2] if isinstance(method, str) and method.startswith("cylbo.") else method


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
