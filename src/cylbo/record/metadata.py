"""What a user keeps with a trial: any JSON values by name, such as an accuracy, a path or the name of a host."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["checked_metadata"]

DEEPEST = 50  # containers inside one another; more is a list that contains itself


def checked_metadata(metadata: object) -> dict[str, Any]:
    """An own copy of a dict of JSON values; NumPy's numbers and arrays become those of Python.

    NaN and infinity are kept in the file of a run, although JSON does not know them; `Result.to_json` writes null
    for NaN, and 1e999, which is read as infinity.
    """
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping):
        raise TypeError(f"metadata must be a dict of JSON values by name, got {metadata!r}.")
    copied = _copied(metadata, "metadata", 0)
    assert isinstance(copied, dict)
    return copied


def _copied(value: object, place: str, depth: int) -> object:
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        try:
            json.dumps(value)
        except ValueError as error:
            raise ValueError(f"{place} must be an integer of at most 4300 digits, got a longer one.") from error
        return int(value)
    if depth == DEEPEST:
        raise ValueError(f"{place} must not be nested deeper than {DEEPEST} levels; does it contain itself?")
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise TypeError(f"{place} must have strings as names, got {name!r}; write str(...) of it.")
        return {str(name): _copied(each, f"{place}[{name!r}]", depth + 1) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_copied(each, f"{place}[{i}]", depth + 1) for i, each in enumerate(value)]
    raise TypeError(
        f"{place} must be a JSON value (a number, string, boolean, None, list or dict), got {value!r}; keep str(...) "
        "of it, or what describes it."
    )
