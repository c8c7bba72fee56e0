"""What the search says of a point that it suggests."""

import dataclasses
from dataclasses import dataclass
from typing import Any

__all__ = ["Suggestion"]


@dataclass(frozen=True, kw_only=True)
class Suggestion:
    """What the search says of a point that it suggests; None where it does not say it.

    Attributes:
        predicted: The value that the model expects at the point, in the user's unit.
        predicted_sd: The standard deviation of what is going to be observed there, noise included.
        acquisition: The acquisition at the point; the log of the expected improvement for `default`.
        displacement: How far the climb to the point went, in half-widths of the box.
        spread: By how much the acquisition differed between the ends of the climbs.
        probability: The probability that the evaluation neither fails nor breaks a constraint.
        trust_radius: The half-width of the trust region about the incumbent, in half-widths of the
            box, where noise hides what lies further away.
        points: The number of data that the process was conditioned on, where a budget limits it.
        fit_points: The number of data that hyperparameters were learned from, likewise.
        candidates: The share of the method's candidates that were looked at, likewise.

    """

    predicted: float | None = None
    predicted_sd: float | None = None
    acquisition: float | None = None
    displacement: float | None = None
    spread: float | None = None
    probability: float | None = None
    trust_radius: float | None = None
    points: int | None = None
    fit_points: int | None = None
    candidates: float | None = None

    def to_json(self) -> dict[str, float]:
        """The numbers that are there, by name."""
        return {name: value for name, value in dataclasses.asdict(self).items() if value is not None}

    @classmethod
    def from_json(cls, numbers: dict[str, Any]) -> "Suggestion":
        """The suggestion with these numbers; raises ValueError for anything else."""
        known = {field.name for field in dataclasses.fields(cls)}
        # As release 0.1 called them
        named = {FORMER.get(name, name): number for name, number in numbers.items()}
        if set(named) <= known and all(type(number) in (int, float) for number in named.values()):
            return cls(**named)
        raise ValueError(f"expected numbers called {', '.join(sorted(known))}, got {numbers!r}")


FORMER = {"chance": "probability", "reach": "trust_radius"}
