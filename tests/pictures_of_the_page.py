"""Pictures of the page for the documentation: ``python tests/pictures_of_the_page.py FOLDER``.

Each room at the width of a desk (1280) and of a phone (400), as far down as the picture is tall.
"""

from __future__ import annotations

import io
import sys
import time
from pathlib import Path

from PIL import Image

from browser import browsing
from page_server import ROOMS, serving, until

TALL = {1280: 1000, 400: 1100}


def main(folder: Path) -> None:
    """Write app-ROOM-WIDTH.webp, and the dark page of the first room."""
    with serving() as address:
        for width, dark in ((1280, False), (400, False), (1280, True)):
            with browsing(width, TALL[width], dark=dark) as driver:
                for path, ready in list(ROOMS.items())[: 1 if dark else None]:
                    driver.get(address + path)
                    until(driver, ready)
                    time.sleep(1.0)  # until lines have stopped moving
                    name = f"app-{path.partition('?')[0] or 'explore'}-{width}{'-dark' if dark else ''}.webp"
                    picture = Image.open(io.BytesIO(driver.get_screenshot_as_png()))
                    picture.convert("RGB").save(folder / name, quality=70, method=6)
                    print(folder / name, (folder / name).stat().st_size)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
