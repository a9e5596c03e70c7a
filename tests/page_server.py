"""The page as a user starts it, and what a visitor waits for."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SAID = r"overlaps is at (http://127\.0\.0\.1:\d+/)"


@contextmanager
def serving() -> Iterator[str]:
    """The address of a server of its own."""
    command = [sys.executable, "-m", "overlaps", "app", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            said = re.match(SAID, process.stdout.readline())
            assert said is not None
            yield said[1]
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:  # a request that it still answers must not hold up the tests
                process.kill()


def until(driver: Any, script: str, seconds: float = 120) -> Any:
    """What an expression of JavaScript is, once it is true."""
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(driver, seconds, 0.1).until(lambda driver: driver.execute_script(f"return {script}"), script)


def drawn(name: str) -> str:
    """The lines of a picture, in JavaScript."""
    return f"(document.querySelector('#{name} .js-plotly-plot')?._fullData || []).filter(t => t.mode == 'lines')"


ROOMS = {  # of each, when it shows all that it has to show
    "": f"{drawn('error')}.length == 3 && {drawn('overlap')}.length == 12",
    "data?rows=digits&file=digits": f"{drawn('learning')}.length >= 2",
    "outliers?classes=4": "(document.querySelector('#spectrum .js-plotly-plot')?._fullData || []).length > 0",
    "papers": "document.querySelector('#picture img')?.complete",
}
