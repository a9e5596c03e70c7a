"""Tests and documentation draw without a screen, and close what they have drawn; Ctrl-C reaches what they start.

Examples that Hypothesis finds are the same in every run; new ones are looked for by `make fuzz`.
"""

import signal
from collections.abc import Iterator

import matplotlib
import pytest
from hypothesis import settings

matplotlib.use("Agg")
settings.register_profile("same examples in every run", derandomize=True)
settings.load_profile("same examples in every run")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so it is in the background of a script, and in all it starts
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def closed_figures() -> Iterator[None]:
    yield
    import matplotlib.pyplot as plt

    plt.close("all")
