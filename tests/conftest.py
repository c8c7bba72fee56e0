"""Hypothesis runs the same examples everywhere and never looks at the clock."""

from hypothesis import settings

settings.register_profile("cylbo", deadline=None, derandomize=True)
settings.load_profile("cylbo")
