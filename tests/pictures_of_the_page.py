"""Pictures of the page, a report and the site, for the documentation: ``python tests/pictures_of_the_page.py FOLDER``.

Each at the width of a desk (1280) and of a phone (400), as far down as the picture is tall. Those of the site are of
docs/_build/html, which `make docs` builds.
"""

from __future__ import annotations

import io
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image

from browser import browsing
from overlaps.cli.experiment import Experiment
from overlaps.pages.report import read, write
from page_server import ROOMS, serving, until

TALL = {1280: 1000, 400: 1100}
SITE = Path(__file__).parents[1] / "docs" / "_build" / "html"
PAGES = {"landing": "index.html", "gallery": "gallery.html"}
DRAWN = "document.querySelectorAll('.plot .main-svg').length > 0"
LOADED = "[...document.images].slice(0, 8).every(image => image.complete)"
RUN = """
[data]
kind = "GaussianInputs"
[teacher]
units = 2
[student]
units = 2
[algorithm]
rate = 0.5
[run]
size = 300
last = 30.0
count = 25
meso_runs = 20
micro_runs = 10
"""


def main(folder: Path, site: Path = SITE) -> None:
    """Write app-ROOM-WIDTH.webp with the dark page of the first room, report-WIDTH.webp and site-PAGE-WIDTH.webp."""
    with serving() as address:
        pages = {f"app-{path.partition('?')[0] or 'explore'}": (address + path, done) for path, done in ROOMS.items()}
        take(folder, pages)
        take(folder, dict(list(pages.items())[:1]), widths=(1280,), dark=True)
    with tempfile.TemporaryDirectory() as there:
        run = Experiment.from_toml(RUN).execute(Path(there) / "run", progress=False).folder
        take(folder, {"report": (write(read(run), Path(there) / "report.html").as_uri(), DRAWN)})
    built = {f"site-{name}": ((site / page).as_uri(), LOADED) for name, page in PAGES.items() if (site / page).exists()}
    take(folder, built)


def take(
    folder: Path, pages: dict[str, tuple[str, str]], widths: tuple[int, ...] = (1280, 400), *, dark: bool = False
) -> None:
    """Pictures of pages by name: an address, and the JavaScript that is true once it shows all that it has."""
    for width in widths:
        with browsing(width, TALL[width], dark=dark) as driver:
            for name, picture in shown(driver, pages):
                path = folder / f"{name}-{width}{'-dark' if dark else ''}.webp"
                picture.convert("RGB").save(path, quality=70, method=6)
                print(path, path.stat().st_size)


def shown(driver: Any, pages: dict[str, tuple[str, str]]) -> Iterator[tuple[str, Image.Image]]:
    """What a browser shows of each page."""
    for name, (address, ready) in pages.items():
        driver.get(address)
        until(driver, ready, 300)
        time.sleep(1.0)  # until lines have stopped moving
        yield name, Image.open(io.BytesIO(driver.get_screenshot_as_png()))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
