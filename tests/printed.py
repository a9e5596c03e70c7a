"""Numbers read from what is printed, so that tests compare them as numbers and not digit by digit."""

from __future__ import annotations

import re

NUMBER = r"(-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)"


def numbers(form: str, text: str) -> list[float]:
    """Those of a text at the braces of a form, which stands in it: of "slope drifts from {} to {}", say."""
    found = re.search(NUMBER.join(map(re.escape, form.split("{}"))), text)
    assert found, f"{form!r} is not in {text!r}"
    return [float(each) for each in found.groups()]
