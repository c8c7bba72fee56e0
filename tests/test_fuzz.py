"""A share of `make fuzz`: hostile calls by the hundred, none of which raises what it should not or leaves a trace."""

import random
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fuzz

CALLS = 250


@pytest.mark.parametrize("seed", range(6))
def test_hostile_calls_are_refused_and_change_nothing(seed, tmp_path):
    tally = Counter()
    session = fuzz.play(random.Random(seed), tmp_path, CALLS, tally)
    assert session.calls >= CALLS
    refused = sum(n for (_, outcome), n in tally.items() if outcome != "accepted")
    assert CALLS // 5 < refused < tally.total()  # hostile, and not only


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(st.randoms(use_true_random=False))
def test_no_sequence_of_calls_that_hypothesis_finds_does_harm(tmp_path_factory, rng):
    fuzz.play(rng, tmp_path_factory.mktemp("fuzz"), 20)
