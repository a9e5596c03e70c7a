"""A variable as it moves in time: weights that specialise, eigenvalues that leave the bulk; as a GIF or a player.

Every frame has the entries of the variable at one time as bars, the mean over runs, next to the error with a mark at
that time. The player is a piece of HTML with a button and a slider that needs no network.
"""

from __future__ import annotations

import base64
import html
import io
import json
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..interface import files
from ..interface.checks import checked, whole
from ..interface.errors import InputError, unknown
from .curves import TrajectoryLike, trajectory
from .palette import COLOURS

MOST = 120  # frames
PLAYER = """<div class="overlaps-player" style="max-width:{width}px">
<img alt="{words}" style="max-width:100%">
<div style="display:flex;gap:.6em;align-items:center"><button type="button" aria-label="play or pause">▶</button>
<input type="range" min="0" max="{last}" value="0" step="1" aria-label="time" style="flex:1">
<output>t = {first}</output></div>
<script type="application/json">{frames}</script>
<script>(function () {{
  const root = document.currentScript.parentElement, made = JSON.parse(root.querySelector("script").textContent);
  const image = root.querySelector("img"), range = root.querySelector("input"), button = root.querySelector("button");
  let timer = null;
  function show() {{
    image.src = "data:image/png;base64," + made.frames[range.value];
    root.querySelector("output").textContent = "t = " + made.times[range.value];
  }}
  function step() {{ range.value = (Number(range.value) + 1) % made.frames.length; show(); }}
  button.addEventListener("click", () => {{
    if (timer) {{ clearInterval(timer); timer = null; }} else timer = setInterval(step, {pause});
    button.textContent = timer ? "⏸" : "▶";
  }});
  range.addEventListener("input", show);
  show();
}})();</script></div>"""


@dataclass(frozen=True)
class Animation:
    """Frames (PNG) and their times; a notebook shows the player."""

    frames: tuple[bytes, ...]
    times: tuple[float, ...]
    words: str
    pause: int

    @checked
    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write a GIF, or a page with a player, by the ending of the name: .gif or .html."""
        path = Path(path)
        if path.suffix == ".gif":
            return files.write(path, self._gif())
        if path.suffix == ".html":
            title = html.escape(self.words)
            head = f'<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>{title}</title><body>'
            return files.write(path, f"{head}{self._repr_html_()}</body></html>")
        raise InputError(f"path: expected a name that ends in .gif or .html, got {path.name!r}")

    def _gif(self) -> bytes:
        from PIL import Image

        images = [Image.open(io.BytesIO(frame)).convert("P", palette=Image.Palette.ADAPTIVE) for frame in self.frames]
        buffer = io.BytesIO()
        images[0].save(buffer, "GIF", save_all=True, append_images=images[1:], duration=self.pause, loop=0)
        return buffer.getvalue()

    def _repr_html_(self) -> str:
        frames = [base64.b64encode(frame).decode() for frame in self.frames]
        times = [f"{time:.3g}" for time in self.times]
        return PLAYER.format(
            width=900,
            words=html.escape(self.words),
            last=len(frames) - 1,
            first=times[0],
            frames=json.dumps({"frames": frames, "times": times}),
            pause=self.pause,
        )

    def __repr__(self) -> str:
        return f"Animation({self.words}: {len(self.frames)} frames; save it as .gif or .html)"


def animate(result: TrajectoryLike, name: str, frames: int = 40, pause: int = 120) -> Animation:
    """The entries of a variable as they move, at up to `frames` of the times that were recorded.

    Parameters
    ----------
    name: ``"R"``, ``"m"`` or ``"Q"`` for weights that specialise, ``"hessian_values"`` for a spectrum observed.
    frames: at most 120. pause: milliseconds between two of them.
    """
    frames, pause = whole("frames", frames, least=2, most=MOST), whole("pause", pause, least=10)
    along = {str(n): [d for d in ("time", "observed") if d in v.dims] for n, v in result.data.data_vars.items()}
    names = [n for n, dims in along.items() if dims and result.data[n].ndim > 2]
    if name not in names:
        raise unknown("variable with entries", name, names)
    axis = along[name][0]
    mean = result.data[name].mean("run").transpose(axis, ...)
    times = mean[axis].values
    values = mean.values.reshape(times.size, -1)
    labels = [",".join(map(str, entry)) for entry in np.ndindex(mean.shape[1:])]
    some = np.unique(np.linspace(0, times.size - 1, frames).round().astype(int))
    drawn = tuple(_frame(result, name, labels, values, float(times[i]), int(i)) for i in some)
    return Animation(drawn, tuple(times[some].tolist()), f"{name.replace('_', ' ')} along learning", pause)


def _frame(
    result: TrajectoryLike, name: str, labels: list[str], values: NDArray[np.float64], time: float, place: int
) -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    bars, error = figure.subplots(1, 2)
    bars.bar(range(len(labels)), values[place], color=COLOURS[0])
    bars.axhline(0, color="k", lw=0.8)
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    edge = 0.05 * (high - low or 1.0)
    bars.set(ylim=(low - edge, high + edge), xlabel="entry", title=f"{name.replace('_', ' ')} at time {time:.3g}")
    if len(labels) <= 16:
        bars.set_xticks(range(len(labels)), labels, fontsize="small")
    trajectory(result, "error", error, color=COLOURS[0])
    left = error.get_xlim()[0] if error.get_xscale() == "log" else -np.inf  # where time 0 is not on the axis
    error.axvline(max(time, left), color=COLOURS[1], lw=2.5, zorder=3, clip_on=False, label=f"time {time:.3g}")
    error.legend(fontsize="small", loc="lower left")
    return files.picture(figure, dpi=80)
