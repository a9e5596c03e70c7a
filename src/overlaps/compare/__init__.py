"""Theory against simulation: verdicts, finite-size scaling, discrepancies."""

from .beyond_gaussian import beyond_gaussian
from .discrepancy import tlog_rmse
from .finite_size import check_scaling
from .verdict import compare

__all__ = ["beyond_gaussian", "check_scaling", "compare", "tlog_rmse"]
