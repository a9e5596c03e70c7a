"""Papers: their figures and claims, each re-derived by this library.

Every folder here is a paper, found by its name, which is the paper's handle, with all of its modules: a new figure or
claim is one new file. `ledger` says what is registered, `verification` measures claims, `controls` breaks them, and
`gallery` draws figures.
"""

from .controls import broken, kept_runs
from .gallery import Gallery, draw_figure, draw_gallery
from .index import paper, papers
from .ledger import Claim, Control, Measurement, Paper, PaperFigure, told, verdict
from .verification import Report, verify

__all__ = [
    "Claim",
    "Control",
    "Gallery",
    "Measurement",
    "Paper",
    "PaperFigure",
    "Report",
    "broken",
    "draw_figure",
    "draw_gallery",
    "kept_runs",
    "paper",
    "papers",
    "told",
    "verdict",
    "verify",
]
