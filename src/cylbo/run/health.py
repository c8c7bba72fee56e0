"""Is the search well? What its last suggestions and its model say, for people to read."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cylbo.model.scaling import from_compressed
from cylbo.record.trial import ELSEWHERE, Trial
from cylbo.rendering import Rows, aligned, html_table, one_line
from cylbo.search.data import Known
from cylbo.search.learn import State, profiled
from cylbo.search.settings import Method
from cylbo.space.box import Box
from cylbo.space.domain import Domain
from cylbo.space.named import Frame

__all__ = ["Health", "examined"]

# Ids that are listed
MOST_PENDING = 8
LATELY = 10  # suggestions that are looked at
ON_BOUND = 1e-9  # of the width: as close to a bound counts as on it
FLAT = 1e-9
# Characters that are shown
LONGEST_ORIGIN = 60
FEWEST_JUDGED = 10  # evaluations before the model can be judged

OFTEN = 0.5  # shares from which on something is worth a word
SOME = 0.2
# Calibration from which on the model is too sure of itself. A small one does no harm: any objective that is smoother
# than the model expects has it
TOO_SURE = 2.0


@dataclass(frozen=True)
class Health:
    """A small report on the state of a search; `print` it.

    Numbers are NaN where there is nothing to say yet, or where the method does not say it. "The
    last suggestions" are at most ten. What is said of the model is said of values as the model sees
    them: large ones are compressed.

    Attributes:
        evaluations: The number of evaluations that have a value.
        failed: The number of evaluations that failed.
        open: The number of trials whose outcome has not arrived.
        pending: The ids of these trials.
        origin: How the last point came about, see `Trial.origin`; it is "" before the first.
        origins: How many points came about in each way, a dict by origin.
        on_bounds: The share of the numbers in the last suggestions that lie on a bound.
        radius: The mean distance of the last suggestions from the centre, as a share of the
            farthest corner's.
        displacement: The mean distance that the last climbs of the acquisition covered, in
            half-widths of the box.
        flat: Whether the acquisition was the same wherever it was looked at.
        chance: The mean chance that the last suggestions were given to neither fail nor break a
            constraint.
        explained: The share of the variance of the values that the model predicts, each value from
            the others; at 0 it predicts no better than their mean.
        calibration: The root mean square of the errors of these predictions, each divided by the
            standard deviation that the model gave it; at 1 the model knows how uncertain it is.
        within_90: The share of the values that lie inside the middle 90 % of what was predicted.
        noise: The standard deviation of the noise that is inferred near the best values.
        better_than_mean: Whether the model predicts better than the mean of the values.
        warnings: What to think about and what to do, a sentence each.

    """

    evaluations: int
    failed: int
    open: int
    pending: tuple[int, ...]
    origin: str
    origins: Mapping[str, int]
    on_bounds: float
    radius: float
    displacement: float
    flat: bool
    chance: float
    explained: float
    calibration: float
    within_90: float
    noise: float
    better_than_mean: bool
    warnings: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([aligned(self._rows()), *(f"! {warning}" for warning in self.warnings)])

    def _repr_html_(self) -> str:
        return html_table([*self._rows(), *(("warning", warning) for warning in self.warnings)])

    def _rows(self) -> Rows:
        rows = [
            ("evaluations", f"{self.evaluations} with a value, {self.failed} failed, {self.open} open"),
            *self._open_rows(),
            ("last suggestion", one_line(self.origin, LONGEST_ORIGIN) or "none yet"),
            ("on the bounds", f"{_percent(self.on_bounds)} of the numbers"),
            ("radius", f"{_percent(self.radius)} of the way to the farthest corner"),
            ("climb", f"{_number(self.displacement)} half-widths of the box" + ", flat" * self.flat),
        ]
        if not math.isnan(self.chance):
            rows.append(("chance", f"{_percent(self.chance)} to give a value that counts"))
        if not math.isnan(self.explained):
            within = f"{_percent(self.within_90)} within 90 %"
            rows += [
                ("model", f"predicts {_percent(self.explained)} of the variance of values left out"),
                ("calibration", f"{_number(self.calibration)} (1 is honest), {within}"),
                ("noise", _number(self.noise)),
            ]
        return rows

    def _open_rows(self) -> Rows:
        """Which trials are open, and what to do with those whose evaluation was lost."""
        if not self.pending:
            return []
        more = len(self.pending) - MOST_PENDING
        ids = ", ".join(map(str, self.pending[:MOST_PENDING])) + f" and {more} more" * (more > 0)
        return [("open", f"trial {ids}: tell, fail or cancel() those that were lost")]


def examined(trials: Sequence[Trial], known: Known, state: State, space: Box | Frame, config: Method) -> Health:
    """The report on a run."""
    domain = space.domain
    lately = [trial for trial in trials if trial.suggestion.acquisition is not None][-LATELY:]
    points = space.to_ball(np.array([trial.x for trial in lately]).reshape(len(lately), space.dim))
    near = ON_BOUND * (domain.high - domain.low)
    low, high = domain.project(np.stack([domain.low, domain.high]))  # where the outermost integers are
    on_bounds = (points <= low + near) | (points >= high - near)
    if isinstance(space, Frame):
        on_bounds = on_bounds[:, space.space.ordered]
    said = [trial.suggestion for trial in lately]
    spread = [each.spread for each in said if each.spread is not None]
    moved = [each.displacement for each in said if each.displacement is not None]
    chances = [each.probability for each in said if each.probability is not None]
    asked = [trial for trial in trials if trial.origin not in ELSEWHERE]
    report = Health(
        evaluations=len(known.y),
        failed=len(known.failed),
        open=len(known.pending),
        pending=tuple(trial.id for trial in trials if trial.status == "open"),
        origin=asked[-1].origin if asked else "",
        origins=dict(Counter(trial.origin for trial in trials)),
        on_bounds=_mean(on_bounds),
        radius=_mean(np.linalg.norm(points, axis=-1) / domain.radius),
        displacement=_mean(moved),
        flat=bool(spread) and max(spread) < FLAT and max(moved) < FLAT,
        chance=_mean(chances),
        explained=math.nan,
        calibration=math.nan,
        within_90=math.nan,
        noise=math.nan,
        better_than_mean=False,
        warnings=(),
    )
    report = _judged(report, known, state, domain, config)
    return dataclasses.replace(report, warnings=tuple(_warnings(report, asked[-LATELY:], known)))


def _judged(report: Health, known: Known, state: State, domain: Domain, config: Method) -> Health:
    """The report with what there is to say of the model."""
    last = profiled(known, domain, state, config) if len(known.y) >= FEWEST_JUDGED else None
    if last is None:
        return report
    theta, profile = last
    if profile.left_out is None:
        return report
    error, sd = profile.left_out
    spread = profile.t - profile.t.mean()
    best = known.y.min()
    inferred = math.sqrt(math.exp(theta[1]) * profile.amplitude)
    explained = 1.0 - float(error @ error) / max(float(spread @ spread), 1e-300)
    return dataclasses.replace(
        report,
        explained=explained,
        calibration=float(np.sqrt(np.mean((error / sd) ** 2))),
        within_90=float((np.abs(error) <= 1.645 * sd).mean()),
        noise=float(from_compressed(np.array([inferred]), theta[2], known.y)[0] - best),
        better_than_mean=explained > 0.0,
    )


def _warnings(report: Health, lately: Sequence[Trial], known: Known) -> list[str]:
    found = []
    fallen = [trial for trial in lately if trial.origin in ("last hyperparameters", "space-filling")]
    if fallen:
        found.append(
            f"{len(fallen)} of the last {len(lately)} points came without a working model ({fallen[-1].origin}): look "
            "for values that are out of all proportion, or points that lie too close together."
        )
    if lately and lately[-1].origin == "covering":
        found.append(
            "the model's first suggestions came out much worse than it predicted, so random points show it more of the "
            "box before it goes on: values change faster than it could know."
        )
    if report.on_bounds > OFTEN:
        found.append("most numbers are proposed on their bounds: widen the bounds if you can.")
    if report.flat:
        found.append("the acquisition is flat: the model expects nothing anywhere; more evaluations may not help.")
    failed = sum(trial.status == "failed" for trial in lately)
    if lately and failed > SOME * len(lately):
        found.append(
            f"{failed} of the last {len(lately)} evaluations failed: give bounds or constraints if you know them."
        )
    kept_near = sum(trial.suggestion.trust_radius is not None for trial in lately)
    if lately and kept_near > OFTEN * len(lately):
        found.append(
            "noise hides most of what there is to see, so the search keeps close to a point that is good for certain: "
            "average several evaluations into one value if you can."
        )
    if not math.isnan(report.explained):
        if not report.better_than_mean:
            found.append("the model predicts no better than the mean of the values: they may be noise, or too few yet.")
        if report.calibration > TOO_SURE:
            found.append("errors of prediction are much more than the model expects.")
    if known.allowed.size and not known.allowed.any():
        found.append("no point so far keeps every constraint.")
    return found


def _mean(numbers: Sequence[float] | np.ndarray) -> float:
    return float(np.mean(numbers)) if np.size(numbers) else math.nan


def _percent(share: float) -> str:
    return "?" if math.isnan(share) else f"{100.0 * share:.0f} %"


def _number(value: float) -> str:
    return "?" if math.isnan(value) else f"{value:.3g}"
