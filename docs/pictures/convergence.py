"""Draw docs/pictures/convergence.svg, the picture of docs/start.md, as the block there does.

python docs/pictures/convergence.py
"""

import re
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import cylbo

PICTURE = Path(__file__).with_name("convergence.svg")
# Text stays text, which is small, and the identifiers inside an SVG are random without a salt
LOOK = {"svg.fonttype": "none", "svg.hashsalt": "cylbo"}

with mpl.rc_context(LOOK):
    result = cylbo.minimize(lambda x: sum((x - 0.3) ** 2), bounds=[(-1, 1)] * 5, budget=40, seed=0)
    axes = cylbo.plot.convergence(result, title="five parameters", optimum=0.0)
    axes.figure.savefig(PICTURE, metadata={"Date": None, "Creator": None})
# A hundredth of a point is finer than a screen shows
PICTURE.write_text(re.sub(r"(\d+\.\d\d)\d+", r"\1", PICTURE.read_text()))
