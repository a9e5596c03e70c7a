"""A real browser without a window, for tests of pages: Chromium or Chrome, driven by Selenium.

Where there is none the tests that need it are skipped with one line that says how to get one; with OVERLAPS_BROWSER
set, as in continuous integration, they fail.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
HOW = "no Chromium or no chromedriver found; on Debian: apt-get install chromium chromium-driver"


def found() -> tuple[str, str] | None:
    """Paths of a browser and of its driver."""
    browser = next((path for name in NAMES if (path := shutil.which(name))), None)
    driver = shutil.which("chromedriver")
    return (browser, driver) if browser and driver else None


@contextmanager
def browsing(width: int = 1280, height: int = 900, *, dark: bool = False) -> Iterator[Any]:
    """A window of this size; leaves nothing behind."""
    paths = found()
    if paths is None:
        (pytest.fail if os.environ.get("OVERLAPS_BROWSER") else pytest.skip)(HOW)
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = paths[0]
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(paths[1]))
    try:
        narrowed(driver, width, height)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        yield driver
    finally:
        driver.quit()


def narrowed(driver: Any, width: int = 400, height: int = 800) -> None:
    """The size of a phone, or another: a window is never narrower than 500 pixels, a page that is told so can be."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def complaints(driver: Any) -> list[str]:
    """What the console says that is worse than information, since it was last asked."""
    return [entry["message"] for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


def requests(driver: Any) -> list[str]:
    """Addresses that were asked for, since it was last asked."""
    import json

    messages = (json.loads(entry["message"])["message"] for entry in driver.get_log("performance"))
    asked = (m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent")
    return [url for url in asked if not url.startswith(("data:", "blob:"))]


def buttons(driver: Any) -> list[str]:
    """What the buttons of all pictures offer."""
    return driver.execute_script("return [...document.querySelectorAll('.modebar-btn')].map(e => e.dataset.title)")


def offers_no_upload(driver: Any) -> bool:
    """Whether the pictures have buttons, and none that would send what is drawn to a server of others."""
    offered = buttons(driver)
    return any("Download" in words for words in offered) and not any(
        part in words.lower() for words in offered for part in ("share", "cloud", "edit")
    )


if __name__ == "__main__":  # before the tests, for those who run them
    if found() is None:
        print(f"note: {HOW}; pages are not tested without")
