"""One line per evaluation for Python's `logging`, under the name `cylbo`. Nothing is shown unless the user asks."""

import logging

from cylbo.record.trial import Trial

__all__ = ["line", "logger"]

logger = logging.getLogger("cylbo")
logger.addHandler(logging.NullHandler())

LONGEST_REASON = 80


def line(trial: Trial, best: Trial | None, seconds: float | None) -> str:
    """What came of a trial, the best value so far, and the seconds that suggestion and evaluation took.

    `seconds` is the time since the trial was asked for; None if that was not in this process.
    """
    outcome = {"done": f"value {trial.value:.6g}", "failed": "failed"}.get(trial.status, trial.status)
    if trial.status == "failed" and trial.reason:
        reason = " ".join(trial.reason.split())
        outcome += f" ({reason[:LONGEST_REASON]}{'...' * (len(reason) > LONGEST_REASON)})"
    shown = "none" if best is None else f"{best.value:.6g} (trial {best.id})"
    parts = [f"trial {trial.id}: {outcome}", f"best {shown}"]
    if trial.origin == "added":
        parts.append("evaluated elsewhere")
    else:
        parts.append(f"suggested in {trial.seconds:.2f} s")
    if seconds is not None:
        parts.append(f"evaluated in {seconds:.2f} s")
    return ", ".join(parts)
