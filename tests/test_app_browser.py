"""The page in a real browser: what a visitor drags, drops, draws, types, takes along and reads."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import overlaps as ov
from browser import browsing, buttons, complaints, offers_no_upload, requests
from overlaps.pages.app.hessian_course import Mixed
from overlaps.pages.app.student_teacher import Explored, theory
from page_server import ROOMS, drawn, serving, until
from visitors import Visitor, values

CURVE = f"[...({drawn('error')}[0]?.y || [])]"
SCHEDULED = "(document.getElementById('scheduled').getClientRects().length > 0)"
NASTY = "<img src=x onerror=\"document.title='owned'\">"
# Text and its background, of all elements that hold text themselves and are seen.
COLOURS = """
const seen = [], clear = 'rgba(0, 0, 0, 0)';
const kinds = 'h1,h2,label,legend,p,a,button,pre,summary,figcaption,td,th,span,div.status';
for (const e of document.querySelectorAll(kinds)) {
  if (!e.innerText?.trim() || !e.getClientRects().length) continue;
  let under = e;
  while (under && getComputedStyle(under).backgroundColor == clear) under = under.parentElement;
  seen.push([getComputedStyle(e).color, getComputedStyle(under || document.body).backgroundColor, e.innerText]);
}
return seen;
"""
# Tables that do not fit, and pictures that the keyboard cannot move.
CUT = """
return [...document.querySelectorAll('.wide')].filter(e => e.scrollWidth > e.clientWidth)
  .filter(e => e.querySelector('table') || e.tabIndex != 0).map(e => e.innerText.slice(0, 200));
"""
UNNAMED = """
return [...document.querySelectorAll('input, select, textarea, button')]
  .filter(e => e.getClientRects().length && e.ariaHidden != 'true')
  .filter(e => !(e.labels?.length || e.innerText?.trim() || e.ariaLabel || e.getAttribute('aria-labelledby')))
  .map(e => e.outerHTML.slice(0, 200));
"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A server of its own, as a user starts it."""
    with serving() as where:
        yield where


@pytest.fixture
def driver(address: str) -> Iterator[Any]:
    """A browser whose console must be empty in the end, and that has asked nobody but the page."""
    with browsing() as made:
        yield made
        assert complaints(made) == []
        assert all(url.startswith(address) for url in requests(made))


def text(driver: Any, name: str) -> str:
    return driver.execute_script(f"return document.getElementById('{name}')?.innerText || ''")


def test_a_slider_moves_theory_and_training_follows(address: str, driver: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    driver.get(address)
    until(driver, ROOMS[""])  # theory, chain and training
    before = until(driver, CURVE)
    assert offers_no_upload(driver)
    assert np.allclose(before, theory(Explored()).data["error"].values[0, 1:])
    rate = driver.find_element("id", "rate")
    ActionChains(driver).click_and_hold(rate).move_by_offset(40, 0).release().perform()
    until(driver, f"{CURVE}[5] != {before[5]}")
    assert float(text(driver, "rate-value")) > 1.5
    until(driver, ROOMS[""])
    dragged = until(driver, CURVE)
    rate.send_keys(Keys.ARROW_LEFT)  # with the keyboard
    until(driver, f"{CURVE}[5] != {dragged[5]}")
    value = driver.execute_script("return document.getElementById('rate').value")
    until(driver, f"document.getElementById('explore-code').textContent.includes('rate={value}')")


def test_a_schedule_is_drawn_with_the_mouse(address: str, driver: Any) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    driver.get(address + Explored(size=50, last=20.0).to_link())
    before = until(driver, f"{CURVE}.length > 9 && {CURVE}")
    place = driver.find_element("css selector", "#drawing .nsewdrag")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", place)
    path = ActionChains(driver, duration=50).move_to_element_with_offset(place, -250, 0).click_and_hold()
    for _ in range(8):
        path = path.move_by_offset(50, 8)
    path.release().perform()
    schedule = until(driver, "document.getElementById('schedule').value")
    assert Explored(schedule=schedule).knots[0][1] > Explored(schedule=schedule).knots[-1][1]
    until(driver, f"{CURVE}[60] != {before[60]}")
    until(driver, f"document.getElementById('rate').disabled && {SCHEDULED}")
    assert "the schedule sets the rate" in text(driver, "scheduled")
    assert not any("erase" in words.lower() for words in buttons(driver))
    driver.find_element("id", "constant").click()
    until(driver, f"!document.getElementById('rate').disabled && !{SCHEDULED}")
    until(driver, f"Math.abs({CURVE}[60] / {before[60]} - 1) < 1e-9")


def test_rooms_are_as_they_were_left(address: str, driver: Any) -> None:
    """By their doors, by the way back, and by a reload."""
    from selenium.webdriver.common.keys import Keys

    driver.get(address)
    until(driver, f"{CURVE}.length > 9")
    until(driver, "document.querySelector('[aria-current=page]')?.id == 'door-explore'")
    units = driver.find_element("id", "units")
    units.send_keys(Keys.ARROW_RIGHT)
    until(driver, "location.search.includes('units=3')")
    driver.find_element("id", "door-data").click()
    until(driver, "document.getElementById('shipped') && location.pathname == '/data'")
    assert driver.execute_script("return document.querySelectorAll('[aria-current=page]').length") == 1
    driver.find_element("id", "door-explore").click()
    until(driver, "document.getElementById('units')?.value == '3' && location.search.includes('units=3')")
    driver.back()
    until(driver, "document.getElementById('shipped') && location.pathname == '/data'")
    driver.back()
    until(driver, "document.getElementById('units')?.value == '3'")
    driver.refresh()
    until(driver, f"document.getElementById('units')?.value == '3' && {CURVE}.length > 9")


def test_pictures_are_told_in_words(address: str, driver: Any) -> None:
    driver.get(address)
    until(driver, f"{CURVE}.length > 9")
    images = "return [...document.querySelectorAll('.graph')].map(e => [e.getAttribute('role'), e.ariaLabel])"
    told = driver.execute_script(images)
    assert [role for role, _ in told] == ["img"] * 3 and all(words and "against time" in words for _, words in told)


def test_a_file_is_dropped_and_its_forecast_appears(address: str, driver: Any, tmp_path: Path) -> None:
    rows, names = ov.digits()[:, 18:30].astype(float), [NASTY.replace(",", " "), *(f"pixel {i}" for i in range(11))]
    table = np.column_stack([rows, ov.digit_labels() % 2])
    np.savetxt(tmp_path / "digits.csv", table, "%g", ",", header=",".join([*names, "odd"]), comments="")
    (tmp_path / "notes.txt").write_text("no table")
    driver.get(address + "data")
    until(driver, "document.querySelector('#file input')")
    driver.find_element("css selector", "#file input").send_keys(str(tmp_path / "notes.txt"))
    until(driver, "document.getElementById('file-refused')?.innerText.includes('.txt is not read')")
    driver.find_element("css selector", "#file input").send_keys(str(tmp_path / "digits.csv"))
    until(driver, f"{drawn('learning')}.length >= 2")
    assert "theory may" in text(driver, "verdict") and "1797 rows" in text(driver, "forecast-words")
    driver.find_element("id", "target").click()  # the columns, one of which is a script
    until(driver, "document.body.innerText.includes('onerror')")
    assert driver.title == "overlaps" and not driver.find_elements("css selector", "img[src=x]")


def test_what_is_refused_is_told(address: str, driver: Any) -> None:
    driver.get(address + "?units=5000")
    until(driver, "document.getElementById('notice')?.innerText.includes('units: expected at most 6, got 5000')")
    until(driver, f"{CURVE}.length > 9")  # and the room is there, in its usual state
    schedule = driver.find_element("id", "schedule")
    schedule.send_keys("0:0.5 -3:99\n")
    until(driver, "document.getElementById('explore-refused')?.innerText.includes('schedule: ')")
    driver.get(address + "cellar")
    until(driver, "document.getElementById('notice')?.innerText == 'There is no such room.'")


def test_ten_visitors_at_once_get_right_answers(address: str) -> None:
    """Over HTTP, of the server as it is: theory at once where the machine gives it, and else from a process."""
    states = [Explored(rate=0.3 + 0.1 * i, units=1 + i % 3, last=20.0, size=50, seed=i) for i in range(10)]
    begin = threading.Barrier(len(states))

    def visit(state: Explored) -> list[float]:
        visitor, news, end = Visitor(address), None, time.monotonic() + 300
        begin.wait()
        for rate in (1.0, 1.1, state.rate):  # drags, and stays
            chosen = Explored(**{**state.to_mapping(), "rate": rate}).to_mapping()
            moved = {f"{name}_value": value for name, value in chosen.items()}
            found = visitor.ask("error.figure", **moved)
        while not (found.get("error") and found["error"]["figure"]["data"][0]["name"].startswith("macro")):
            assert time.monotonic() < end
            time.sleep(0.5)
            wanted = {"explore_choice_data": state.to_mapping(), "visitor_data": f"visitor {state.seed}"}
            told = visitor.ask("explore-news.data", **wanted, explore_news_data=news)
            news = told.get("explore-news", {}).get("data", news)
            found = visitor.ask("error.figure", **moved, explore_news_data=news)
        assert found["explore-choice"]["data"] == state.to_mapping()
        return values(found["error"]["figure"]["data"][0]["y"])

    with ThreadPoolExecutor(len(states)) as pool:
        shown = list(pool.map(visit, states))
    for state, y in zip(states, shown, strict=True):
        assert y == theory(state).data["error"].values[0, 1:].tolist()  # time 0 is not on the axis


def test_links_files_and_downloads_restore_a_state(address: str, tmp_path: Path) -> None:
    with browsing() as driver:
        driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
        driver.get(address + "outliers" + Mixed(classes=2, size=60, moment=3).to_link())
        until(driver, ROOMS["outliers?classes=4"])
        wanted = [tmp_path / f"overlaps-outliers.{kind}" for kind in ("png", "svg", "nc", "toml")]
        for path in wanted:
            driver.execute_script(f"document.getElementById('outliers-get-{path.suffix[1:]}').click()")
            end = time.monotonic() + 30
            while not path.exists() and time.monotonic() < end:
                time.sleep(0.1)
        heads = [path.read_bytes()[:5] for path in wanted]
        assert heads[0] == b"\x89PNG\r" and heads[1] == b"<?xml" and heads[2] == b"\x89HDF\r"
        assert Mixed.from_toml(wanted[3].read_text()) == Mixed(classes=2, size=60, moment=3)
        explored = Explored(rate=0.77, units=3, last=20.0, size=100)
        (tmp_path / "state.toml").write_text(explored.to_toml())
        driver.find_element("css selector", "#restore input").send_keys(str(tmp_path / "state.toml"))
        until(driver, "document.getElementById('rate')?.value == '0.77'")  # in another room
        until(driver, f"document.getElementById('explore-link').href.endsWith('{explored.to_link()}')")
        assert complaints(driver) == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_room_on_a_phone(address: str, dark: bool) -> None:
    """No wider than the window; every control has a name, every text a contrast of 4.5 (WCAG AA)."""
    from overlaps.plot.palette import contrast

    with browsing(400, 800, dark=dark) as driver:
        for path, ready in ROOMS.items():
            driver.get(address + path)
            until(driver, ready)
            width = driver.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
            assert width[0] <= width[1], f"{path} is wider than the window"
            assert driver.execute_script(UNNAMED) == []
            assert driver.execute_script(CUT) == [], path
            for colour, paper, words in driver.execute_script(COLOURS):
                assert contrast(hexadecimal(colour), hexadecimal(paper)) >= 4.5, (path, words, colour, paper)
        assert complaints(driver) == []


def hexadecimal(colour: str) -> str:
    """rgb(1, 2, 3) as #010203."""
    return "#" + "".join(f"{int(part):02x}" for part in colour[colour.index("(") + 1 : -1].split(",")[:3])


def test_a_figure_of_a_paper(address: str, driver: Any) -> None:
    driver.get(address + "papers?paper=scaling&figure=fig7")
    until(driver, "document.querySelector('#picture img')?.complete")
    assert "holds" in text(driver, "verdicts") and "±" in text(driver, "verdicts")
    assert "Rosenow" in text(driver, "about")
    exponent = driver.find_element("id", "figure-exponent")
    assert exponent.get_attribute("value") == "0.5"
    exponent.clear()
    exponent.send_keys("1.5\n")
    until(driver, "document.getElementById('picture').innerText.includes('β = 1.5')")
    larger = driver.find_element("link text", "Enlarge").get_attribute("href")
    driver.get(address + "papers?paper=committee&numbers=units%3D2+rate%3D0.5")
    until(driver, "document.querySelector('#picture img')?.complete")
    assert driver.find_element("id", "figure-units").get_attribute("value") == "2"
    driver.find_element("link text", "open it").click()
    until(driver, "document.getElementById('last')?.value == '1600'")
    driver.get(larger)
    assert driver.execute_script("return document.documentElement.tagName") == "svg"
