"""What a caller may have meant whose arguments fit no parameter: other names, or too many."""

import difflib
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import ParamSpec, TypeVar

__all__ = ["checked_arguments", "nearest"]

P = ParamSpec("P")
R = TypeVar("R")
Cure = Callable[[Sequence[object]], str | None]


def checked_arguments(cure: Cure | None = None) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator that says what to write where Python only says what is wrong.

    It looks for names that the function does not have, and for more arguments by position than it
    takes. Everything else, such as an argument that is missing, is left to Python. The function
    takes neither *args nor **kwargs.

    Args:
        cure: gets the arguments by position where there are too many, and returns what to do
            instead, or None for the usual advice.

    """

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        called = function.__qualname__.removesuffix(".__init__") + "()"
        parameters = list(inspect.signature(function).parameters.values())
        is_method = parameters[0].name == "self"
        parameters = parameters[is_method:]
        names = [p.name for p in parameters]
        positions = [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]
        options = names[len(positions) :]
        known = f"its arguments are {', '.join(names)}."

        @functools.wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> R:
            given = args[is_method:]
            for name in kwargs:
                if name not in names:
                    free = [other for other in names[len(given) :] if other not in kwargs]
                    wrong = f"{called} got an unexpected argument {name!r}"
                    raise TypeError(f"{wrong}; {nearest(name, free) or known}")
            if len(given) > len(positions):
                expected = f"{called} expected {' and '.join(positions) or 'nothing'} by position"
                got = f"{len(given)} argument{'s' * (len(given) > 1)}"
                advice = (cure(given) if cure else None) or _by_name(options, given[len(positions)])
                raise TypeError(f"{expected}, got {got}; {advice}.")
            return function(*args, **kwargs)

        return checked

    return decorated


def nearest(name: str, names: Sequence[str]) -> str:
    """A question after the one of these names that a misspelt one may stand for; "" if there is none."""
    # With less likeness "iterations" would be taken for "direction"
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.7)
    return f"did you mean {near[0]!r}?" if near else ""


def _by_name(options: Sequence[str], value: object) -> str:
    if not options:
        return "leave the rest out"
    # A number is likely to be meant for the first one; an array or a string may be for any
    example = f", e.g. {options[0]}={value}" if isinstance(value, int | float) else f": {', '.join(options)}"
    return f"give options by name{example}"
