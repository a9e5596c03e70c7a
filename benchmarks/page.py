"""How long a slider of the page waits: the time that the server spends on a callback, as Dash's own script asks it."""

from __future__ import annotations

import time
from statistics import median
from typing import Any

from overlaps.pages.app import Page, warming
from overlaps.pages.app.student_teacher import Explored

from .table import Row, duration


class Client:
    """A visitor without a browser, who asks callbacks of a page; `seconds` is how long the last one took."""

    def __init__(self, page: Page) -> None:
        self.page, self.client, self.seconds = page, page.app.server.test_client(), 0.0
        self.callbacks = self.client.get("/_dash-dependencies").get_json()

    def ask(self, output: str, **values: Any) -> dict[str, Any]:
        """The answer of the callback that has this output, such as ``"error.figure"``; names of parts are with _."""
        found = next(c for c in self.callbacks if output in c["output"].strip(".").split("..."))

        def filled(part: dict[str, str]) -> dict[str, Any]:
            return {**part, "value": values.get(f"{part['id']}_{part['property']}".replace("-", "_"))}

        body = {
            "output": found["output"],
            "outputs": [
                dict(zip(("id", "property"), one.rsplit(".", 1), strict=True))
                for one in found["output"].strip(".").split("...")
            ],
            "inputs": [filled(part) for part in found["inputs"]],
            "state": [filled(part) for part in found["state"]],
            "changedPropIds": [f"{found['inputs'][0]['id']}.{found['inputs'][0]['property']}"],
        }
        began = time.perf_counter()
        answer = self.client.post("/_dash-update-component", json=body)
        self.seconds = time.perf_counter() - began
        assert answer.status_code == 200, (answer.status_code, answer.get_data(as_text=True)[:500])
        return answer.get_json()["response"]


def slider(quick: bool = False) -> list[Row]:
    """Theory while the rate is dragged, K = M = 2, no two positions the same."""
    page = Page(processes=0)
    try:
        warming.warm(lambda: True)
        client, taken, spent = Client(page), [], []
        for i in range(3 if quick else 50):
            state = Explored(rate=0.3 + 0.02 * i).to_mapping()
            before = time.process_time()
            client.ask("error.figure", **{f"{name}_value": value for name, value in state.items()})
            spent.append(time.process_time() - before)
            taken.append(client.seconds)
    finally:
        page.close()
    means = (
        f"CPU time of the server, median of {len(taken)} positions of the rate: theory to time 100 within "
        f"1e-4, three figures, JSON. Wall time here, beside whatever else the machine did: {duration(median(taken))}."
    )
    cost = median(spent)
    return [Row("a slider of the page, K = M = 2", duration(cost), means, "< 100 ms", cost < 0.1)]
