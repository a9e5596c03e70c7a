"""Theory against simulation: verdicts, finite-size scaling, discrepancies."""

from .discrepancy import tlog_rmse
from .finite_size import check_scaling
from .verdict import compare

__all__ = ["check_scaling", "compare", "tlog_rmse"]
