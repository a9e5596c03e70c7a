"""Papers: their figures and claims, each re-derived by this library.

Every folder here is a paper, found by its name, which is the paper's handle, with all of its modules: a new figure or
claim is one new file. `ledger` says what is registered, `verification` measures claims, `gallery` draws figures.
"""

from .gallery import Gallery, draw_figure, draw_gallery
from .index import paper, papers
from .ledger import Claim, Measurement, Paper, PaperFigure, verdict
from .verification import Report, verify

__all__ = [
    "Claim",
    "Gallery",
    "Measurement",
    "Paper",
    "PaperFigure",
    "Report",
    "draw_figure",
    "draw_gallery",
    "paper",
    "papers",
    "verdict",
    "verify",
]
