"""What a method is made of, each number with its source. A method is a choice of parts, not a subclass.

`PAPER` is the authors' method to the letter, `DEFAULT` is ours; `METHODS` names them and the paper's variants. Make
your own with `dataclasses.replace(cylbo.PAPER, angular_degree=9)` and pass it as `method=`.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from cylbo.model import scaling
from cylbo.model.beliefs import Beliefs, Form
from cylbo.model.hyperparameters import Priors
from cylbo.model.kernel import Cylindrical, Matern
from cylbo.search import climb
from cylbo.search.improvement import expected_improvement, log_expected_improvement
from cylbo.search.learn import fitted, sampled
from cylbo.search.settings import Method

__all__ = [
    "DEFAULT",
    "METHODS",
    "PAPER",
    "REVISIONS",
    "from_json",
    "resolve_method",
    "revision",
    "stored_method",
    "to_json",
]


PAPER = Method(name="paper")

# The paper's kernel, priors and sampler with numerics of today
CYLINDER = dataclasses.replace(
    PAPER,
    name="cylinder",
    # float64 factors allow a far smaller nugget than the authors' float32: differences of a millionth of the spread
    # count
    stabilizer=1e-10,
    jitters=tuple(10.0**k for k in range(-10, 0)),
    scaling=scaling.standardized,
    tune_widths=True,
    priors=Priors(log_noise=(-22.0, 16.0)),
    acquisition=log_expected_improvement,
    sobol=climb.sobol_shifted,
    spray=climb.projected_spray,
    spray_scales=(0.002, 0.02, 0.2),
    n_spray=100,
    climb=climb.climb_keeping_best,
    max_steps=100,
)

# What measured best so far, and why: docs/notebook
DEFAULT = dataclasses.replace(
    CYLINDER,
    name="default",
    kernel=Matern,
    warped=False,
    learn=fitted,
    forms=(Form(), Form(stretched=True), Form(stretched=True, effects=True)),
    ambition=0.05,
    noise_ambition=3.0,
    n_first_discrete=16,
    cover=2,
    repeats=True,
    stabilizer=0.0,  # the nugget that was fitted is enough
    sobol=climb.uniform,
    n_sobol=500,
    spray=climb.sparse_spray,
    spray_scales=(0.001, 0.01, 0.05, 0.2, 0.5),
    n_spray=200,
    n_leaders=5,
    n_starts=6,
    starts_per_group=2,
    screening_share=1.0,
    climb=climb.climb_quasi_newton,
    max_steps=100,
)

METHODS: dict[str, Method] = {
    "default": DEFAULT,
    "cylinder": CYLINDER,
    "paper": PAPER,
    "paper-w": dataclasses.replace(PAPER, name="paper-w", warped=False),
    "paper+b": dataclasses.replace(PAPER, name="paper+b", boundary=True),
    "matern": dataclasses.replace(PAPER, name="matern", kernel=Matern, warped=False),
}


# A stored run goes on with the points it would have had as long as the revision of its method is that of the release,
# on the same kind of processor and with the same NumPy and SciPy. Raise the number of a method whenever its golden runs
# (tests/golden.py) change
REVISIONS = dict.fromkeys(METHODS, 1)

# The fields of a method that name a part, and the parts there are
CHOICES = ("kernel", "scaling", "learn", "acquisition", "sobol", "spray", "climb")
PARTS: dict[str, Any] = {
    part.__qualname__: part
    for part in (
        Cylindrical,
        Matern,
        scaling.raw,
        scaling.standardized,
        sampled,
        fitted,
        expected_improvement,
        log_expected_improvement,
        climb.sobol_window,
        climb.sobol_shifted,
        climb.uniform,
        climb.reflected_spray,
        climb.projected_spray,
        climb.sparse_spray,
        climb.climb_until_no_decrease,
        climb.climb_keeping_best,
        climb.climb_quasi_newton,
    )
}
RECORDS: dict[str, Any] = {"priors": Priors, "beliefs": Beliefs}


def resolve_method(method: str | Method) -> Method:
    """The configuration of that name, or the configuration itself."""
    if isinstance(method, Method):
        return method
    if isinstance(method, str) and method in METHODS:
        return METHODS[method]
    raise ValueError(f"method must be one of {', '.join(map(repr, METHODS))} or a cylbo.Method, got {method!r}.")


def revision(method: Method) -> int:
    """The revision of one of our methods; a user's own method has the newest, for it may be made of any part."""
    is_ours = METHODS.get(method.name) == method
    return REVISIONS[method.name] if is_ours else max(REVISIONS.values())


def to_json(method: Method) -> dict[str, Any]:
    """A method as data: every number, and the name of every part."""
    data = _to_json(method)
    assert isinstance(data, dict)
    return data


def _to_json(part: object) -> object:
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        return {field.name: _to_json(getattr(part, field.name)) for field in dataclasses.fields(part)}
    if isinstance(part, tuple | list):
        return [_to_json(each) for each in part]
    if not callable(part):
        return part
    name = getattr(part, "__qualname__", str(part))
    # Our own parts keep their names when they move to another module
    return name if part.__module__.startswith("cylbo.") else f"{part.__module__}.{name}"


def from_json(data: Mapping[str, Any]) -> Method:
    """The method that `to_json` was called on.

    Raises ValueError if it has a part that is not ours, or a field that this release does not know.
    """
    if unknown := sorted(set(data) - {field.name for field in dataclasses.fields(Method)}):
        raise ValueError(f"a method of this release has no {', '.join(unknown)}")
    try:
        return _from_json(data)
    except (TypeError, AttributeError, KeyError) as error:
        raise ValueError(f"it is no method: {error}") from error


def _from_json(data: Mapping[str, Any]) -> Method:
    found: dict[str, Any] = {}
    for name, part in data.items():
        if name in CHOICES:
            if part not in PARTS:
                raise ValueError(f"{name} is {part!r}, which is no part of this release")
            found[name] = PARTS[part]
        elif name in RECORDS:
            record = RECORDS[name]
            found[name] = record(**{key: _tupled(value) for key, value in part.items()})
        elif name == "forms":
            found[name] = tuple(Form(**form) for form in part)
        else:
            found[name] = _tupled(part)
    return Method(**found)


def stored_method(stored: object) -> Method:
    """The method that a file holds: as data, or the name alone if release 0.1 wrote it.

    Raises ValueError if it cannot be made again.
    """
    if isinstance(stored, str) and stored in METHODS:
        return METHODS[stored]
    if not isinstance(stored, Mapping):
        raise ValueError(f"it holds the unknown method {stored!r}")
    return from_json({name: _without_modules(part) for name, part in stored.items()})


def _without_modules(part: object) -> object:
    """Release 0.1 wrote the names of our parts with those of their modules."""
    return part.rpartition(".")[2] if isinstance(part, str) and part.startswith("cylbo.") else part


def _tupled(value: object) -> object:
    return tuple(map(_tupled, value)) if isinstance(value, list) else value
