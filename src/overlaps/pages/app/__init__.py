"""The page `overlaps app`: four rooms in a browser, served on loopback by Dash.

explore: drag a slider and see theory at once, the chain of overlaps and a training a moment later. my data: what
`overlaps learn` says of a table. outliers: the Hessian along training. papers: every figure and verdict. Nothing that a
visitor types is executed; what takes long is computed in processes that are bounded in time and memory (`jobs`).
"""

from .server import Page, serve

__all__ = ["Page", "serve"]
