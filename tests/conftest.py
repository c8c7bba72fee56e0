"""Hypothesis runs the same examples everywhere and never looks at the clock. The lab's tests have one thread."""

import sys

import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

settings.register_profile("cylbo", deadline=None, derandomize=True)
settings.load_profile("cylbo")


@pytest.fixture(autouse=True)
def one_thread(request):
    """As `cylbo bench` gives every run: threads that wait for a busy core are far slower than one
    (`numerics/threads.py`).
    """
    if not request.module.__name__.startswith("test_bench_"):
        yield
        return
    torch = sys.modules.get("torch")
    before = torch and torch.get_num_threads()
    with threadpool_limits(1):
        if torch:
            torch.set_num_threads(1)
        yield
    if torch:
        torch.set_num_threads(before)
