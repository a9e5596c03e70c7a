"""Pictures of the page, a report and the site, for the documentation: ``python tests/pictures_of_the_page.py FOLDER``.

Each at the width of a desk (1280) and of a phone (400), down to its end, or as far as a picture may be tall, with all
that folds open; of a report its end as well. In the first room a schedule is drawn with the mouse. Pictures of the site
are of docs/_build/html, which `make docs` builds, or of another folder that is named. The moving picture of
docs/reports.md is made by the examples of that page.
"""

from __future__ import annotations

import doctest
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
from overlaps.pages.app.student_teacher import Explored
from overlaps.pages.report import read, write
from page_server import ROOMS, serving, until

TALL = {1280: 2900, 400: 4000}
DOCS = Path(__file__).parents[1] / "docs"
SITE = DOCS / "_build" / "html"
PAGES = {"landing": "index.html", "gallery": "gallery.html"}
DRAWN = "document.querySelectorAll('.plot .main-svg').length > 0"
BUSY = "document.querySelector('.status').innerText.includes('Computing')"
LOADED = "[...document.images].every(i => i.complete || i.getBoundingClientRect().top > innerHeight)"
END = "Math.max(...[...document.querySelectorAll('.page, main')].map(e => e.getBoundingClientRect().bottom))"
TABLES = "document.querySelectorAll('main h2')[1].getBoundingClientRect().top"  # below the figures of a report
SMALL = Explored(size=60, last=100.0)  # so small that the band over runs is seen
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
        pages["app-explore"] = (address + SMALL.to_link(), ROOMS[""])
        take(folder, pages)
        take(folder, {"app-explore": pages["app-explore"]}, widths=(1280,), dark=True)
    with tempfile.TemporaryDirectory() as there:
        run = Experiment.from_toml(RUN).execute(Path(there) / "run", progress=False).folder
        report = (write(read(run), Path(there) / "report.html").as_uri(), DRAWN)
        take(folder, {"report": report, "report-end": report})
    built = {f"site-{name}": ((site / page).as_uri(), LOADED) for name, page in PAGES.items() if (site / page).exists()}
    take(folder, built)
    moving(folder)


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
        if driver.find_elements("css selector", "#drawing"):
            draw_schedule(driver)
            until(driver, ready, 300)
            until(driver, f"!({BUSY})", 300)
        driver.execute_script("document.querySelectorAll('main details').forEach(each => { each.open = true; })")
        top = 0
        if name.endswith("-end"):
            driver.execute_script("scrollTo(0, document.documentElement.scrollHeight)")
            top = driver.execute_script(f"return {TABLES}")
        time.sleep(1.0)  # until lines have stopped moving
        end = driver.execute_script(f"return {END}")
        picture = Image.open(io.BytesIO(driver.get_screenshot_as_png()))
        yield name, picture.crop((0, max(round(top), 0), picture.width, min(picture.height, round(end) + 20)))


def draw_schedule(driver: Any) -> None:
    """Draw a rate that falls, across the picture that takes it."""
    from selenium.webdriver.common.action_chains import ActionChains

    place = driver.find_element("css selector", "#drawing .nsewdrag")
    wide, high = place.size["width"], place.size["height"]
    path = ActionChains(driver, duration=50).move_to_element_with_offset(place, -round(0.49 * wide), -round(0.2 * high))
    path = path.click_and_hold()
    for step in range(16):
        path = path.move_by_offset(round(0.06 * wide), round(0.08 * high * 0.8**step))
    path.release().perform()
    until(driver, "document.getElementById('schedule').value")
    time.sleep(2.0)  # until the pictures of the constant rate are gone


def moving(folder: Path) -> None:
    """The GIF of docs/reports.md."""
    names: dict[str, Any] = {}
    for example in doctest.DocTestParser().get_examples((DOCS / "reports.md").read_text(encoding="utf-8")):
        if "macro" not in names:
            exec(example.source, names)
    print(names["macro"].animate("R", frames=30).save(folder / "specialising.gif"))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
