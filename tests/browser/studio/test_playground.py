"""The playground in a real browser: its numbers are the library's, on every stage and in the browser's own trainer."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from groundup.studio.playground.embedded import data as exported
from groundup.studio.playground.model import Playground
from groundup.studio.playground.settings import Settings
from shared.contract import STAGE_TITLES
from shared.training.metrics import evaluate
from tests.browser.studio.conftest import LOOKS, contrast_failures, scrolls_sideways
from tests.stages import USABLE_STAGES

Opened = Callable[..., Any]


def until(page: Any, condition: str, seconds: float = 30) -> None:
    """Wait for a condition in JavaScript. Playwright's own way evaluates a text, which the page's policy forbids."""
    end = time.monotonic() + seconds
    while not page.evaluate(condition):
        assert time.monotonic() < end, f"in vain: {condition}"
        page.wait_for_timeout(20)


def ready(page: Any) -> Any:
    """The page with its first picture."""
    until(page, "document.getElementById('computed').textContent !== ''")
    return page


def step_is(page: Any, count: int) -> None:
    until(page, f"document.getElementById('steps').textContent === '{count}'")


def tab_to(page: Any, name: str) -> None:
    """Press Tab until the element with this id has the focus."""
    for _ in range(80):
        if page.evaluate("document.activeElement.id") == name:
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not reach {name}")


def choose(page: Any, name: str, value: str) -> None:
    """Choose a value in a field of the settings."""
    page.evaluate("document.getElementById('settings-box').open = true")
    page.select_option(f"#set-{name}", value)


def losses_of(playground: Playground) -> list[float]:
    parts = (playground.data.train, playground.data.test)
    return [evaluate(playground.stage, playground.network, part)[0] for part in parts]


def shown_losses(page: Any) -> list[float]:
    return [float(page.inner_text(f"#{name}-loss").replace("\u2212", "-")) for name in ("train", "test")]


@pytest.mark.parametrize(("width", "look"), LOOKS)
def test_steps_by_keyboard_alone_show_the_librarys_numbers(browser_page: Opened, width: int, look: str) -> None:
    page = ready(browser_page("playground", width=width, look=look, query="#data=spirals&seed=3"))
    tab_to(page, "step")
    for count in (1, 2, 3):
        page.keyboard.press("Enter")
        step_is(page, count)
    playground = Playground(Settings(data="spirals", seed=3))
    playground.step(3)
    assert shown_losses(page) == pytest.approx(losses_of(playground), rel=5e-3)
    tab_to(page, "begin")
    page.keyboard.press("Space")
    step_is(page, 0)
    assert not scrolls_sideways(page)
    assert contrast_failures(page) == []


def test_on_a_low_window_the_settings_leave_room_for_the_network(browser_page: Opened) -> None:
    page = ready(browser_page("playground"))
    assert page.evaluate("document.getElementById('settings-box').open")
    page.set_viewport_size({"width": 1000, "height": 700})
    page.reload()
    ready(page)
    assert not page.evaluate("document.getElementById('settings-box').open")
    assert page.locator("#surface").bounding_box()["y"] < 450


def test_it_runs_and_pauses_by_keyboard_alone(browser_page: Opened) -> None:
    page = ready(browser_page("playground"))
    tab_to(page, "run")
    page.keyboard.press("Enter")
    until(page, "Number(document.getElementById('steps').textContent) > 20")
    assert page.inner_text("#run") == "Pause"
    page.keyboard.press("Enter")
    until(page, "document.getElementById('run').textContent === 'Run'")
    stopped = page.inner_text("#steps")
    page.wait_for_timeout(300)
    assert page.inner_text("#steps") == stopped
    playground = Playground(Settings())
    playground.step(int(stopped))
    assert shown_losses(page) == pytest.approx(losses_of(playground), rel=5e-3)


def test_a_click_before_the_studio_has_answered_is_not_lost(browser_page: Opened) -> None:
    page = browser_page("playground")
    page.add_init_script(
        "const ask = fetch; window.fetch = (...all) => new Promise(go => setTimeout(() => go(ask(...all)), 700))"
    )
    page.reload(wait_until="domcontentloaded")
    page.get_by_role("button", name="Run").click()
    page.get_by_role("button", name="Pause").wait_for()
    until(page, "Number(document.getElementById('steps').textContent) > 0")


def test_a_training_that_the_studio_has_ended_is_not_shown_as_running(browser_page: Opened, studio_server: Any) -> None:
    page = ready(browser_page("playground"))
    page.click("#run")
    until(page, "Number(document.getElementById('steps').textContent) > 3")
    studio_server.studio.sessions.close_all()
    until(page, "document.getElementById('run').textContent === 'Run'")
    assert "has ended this training" in page.inner_text("#failed")


HIDE = """hidden => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def test_a_hidden_tab_gives_its_connection_back_and_goes_on_when_it_is_seen(
    browser_page: Opened, studio_server: Any
) -> None:
    first = ready(browser_page("playground"))
    first.click("#run")
    until(first, "Number(document.getElementById('steps').textContent) > 3")
    tabs = [first]
    for _ in range(7):  # more than the connections that a browser opens
        tabs[-1].evaluate(HIDE, True)
        tabs.append(first.context.new_page())
        tabs[-1].goto(studio_server.address + "/playground")
        ready(tabs[-1])
    stopped = int(first.inner_text("#steps"))
    first.wait_for_timeout(300)
    assert int(first.inner_text("#steps")) == stopped
    first.evaluate(HIDE, False)
    until(first, f"Number(document.getElementById('steps').textContent) > {stopped + 3}")
    assert first.inner_text("#run") == "Pause"
    open_sessions = len(studio_server.studio.sessions._open)
    tabs[3].close(run_before_unload=True)
    until(first, "true")
    end = time.monotonic() + 20
    while len(studio_server.studio.sessions._open) == open_sessions:
        assert time.monotonic() < end, "the session of a closed tab stays open"
        first.wait_for_timeout(50)


def test_a_visible_window_too_many_says_so_answers_and_goes_on_when_another_is_closed(
    browser_page: Opened, studio_server: Any
) -> None:
    windows = [ready(browser_page("playground"))]
    for _ in range(6):
        windows.append(windows[0].context.new_page())
        windows[-1].goto(studio_server.address + "/playground")
        ready(windows[-1])
    last = windows.pop()
    last.wait_for_selector("#failed:has-text('Five other windows')")
    last.evaluate("import('/static/common/api.js').then(({ get }) => get('/api/digits/networks'))")  # is answered
    windows[1].close()
    windows[2].close()
    last.wait_for_selector("#failed", state="hidden")
    last.click("#run")
    until(last, "Number(document.getElementById('steps').textContent) > 3")


def test_a_training_moves_from_floor_to_floor(browser_page: Opened) -> None:
    page = ready(browser_page("playground", query="#data=xor&samples=50&layers=4"))
    for count, name in enumerate(USABLE_STAGES, start=1):
        choose(page, "stage", name)
        until(page, f"document.getElementById('computed').textContent.startsWith('{STAGE_TITLES[name]}')")
        page.click("#step")
        until(page, f"document.getElementById('steps').textContent === '{count}'", 120)
    playground = Playground(Settings(data="xor", samples=50, layers=(4,)))
    playground.step(len(USABLE_STAGES))
    assert shown_losses(page) == pytest.approx(losses_of(playground), rel=5e-3)


def test_a_link_shows_the_same_training(browser_page: Opened) -> None:
    page = ready(browser_page("playground"))
    choose(page, "data", "clouds")
    choose(page, "optimizer", "SGD")
    page.fill(".diagram .size >> nth=0", "3")
    page.keyboard.press("Enter")
    until(page, "location.hash.includes('layers=3,4')")
    page.click("#step")
    step_is(page, 1)
    again = ready(browser_page("playground", query="#" + page.url.partition("#")[2]))
    again.click("#step")
    step_is(again, 1)
    assert shown_losses(again) == shown_losses(page)
    assert again.input_value("#set-optimizer") == "SGD"


def test_a_link_with_wrong_settings_says_so_and_the_page_works(browser_page: Opened) -> None:
    page = ready(browser_page("playground", query="#learning_rate=99&data=moons&layers=3,x&seed=5"))
    said = page.inner_text("#failed")
    assert all(name in said for name in ("learning_rate=99", "data=moons", "layers=3,x"))
    assert page.input_value("#set-seed") == "5"
    page.click("#step")
    step_is(page, 1)


@pytest.mark.parametrize("mistake", ["wrong_sign", "missing_mean", "zero_initialisation", "large_rate"])
def test_a_planted_mistake_is_computed_and_explained(browser_page: Opened, mistake: str) -> None:
    page = ready(browser_page("playground", query="#optimizer=SGD"))
    choose(page, "mistake", mistake)
    page.wait_for_selector("#mistake-box:not([hidden])")
    assert len(page.inner_text("#mistake-look")) > 50
    page.click("#step")
    step_is(page, 1)
    playground = Playground(Settings(optimizer="SGD", mistake=mistake))
    playground.step()
    assert shown_losses(page) == pytest.approx(losses_of(playground), rel=5e-3)
    assert contrast_failures(page) == []


def test_a_neuron_is_shown_large_when_it_has_the_focus(browser_page: Opened) -> None:
    page = ready(browser_page("playground", query="#activation=relu&layers=3"))
    page.locator(".neuron").nth(2).focus()
    assert re.fullmatch(
        r"Hidden layer 1, neuron 1: relu\(.*x₁.*x₂ \+ 0\): bias 0.*", page.inner_text("#output-caption")
    )
    assert page.inner_text("#output-title") == "Hidden layer 1, neuron 1"
    assert not page.is_visible("#classes")
    page.locator("#step").focus()
    assert page.inner_text("#output-caption").startswith("The colour is the class")
    assert page.inner_text("#output-title") == "Its answer"
    assert page.is_visible("#classes")


def test_the_formula_of_a_neuron_has_the_librarys_weights(browser_page: Opened) -> None:
    page = ready(browser_page("playground", query="#data=spirals&layers=8,3&activation=tanh&seed=4"))
    page.click("#step")
    step_is(page, 1)
    playground = Playground(Settings(data="spirals", layers=(8, 3), activation="tanh", seed=4))
    playground.step()
    first, bias, second, *_ = playground.parameters()
    caption = page.locator("#output-caption")

    def numbers(neuron: int) -> list[float]:
        page.locator(".neuron").nth(neuron).focus()
        (sum_,) = re.findall(r": tanh\((.*)\): bias", caption.inner_text())
        plain = re.sub(r"·[xh][₀-₉]+", "", sum_.replace("\u2212", "-").replace("- ", "-").replace("+ ", ""))
        return [float(each) for each in plain.replace(" smaller", "").split()]

    assert numbers(2 + 1) == pytest.approx([*first[:, 1], bias[1]], rel=0.06, abs=1e-4)
    *written, left, _ = numbers(2 + 8 + 2)
    largest = sorted(range(8), key=lambda i: -abs(second[i, 2]))[:6]
    assert written == pytest.approx(second[sorted(largest), 2], rel=0.06, abs=1e-4)
    assert left == 2


def test_the_large_picture_has_the_colours_of_the_predictions(browser_page: Opened) -> None:
    page = ready(browser_page("playground", query="#data=clouds"))
    for count in range(1, 31):
        page.click("#step")
        step_is(page, count)
    corners = page.evaluate(
        """() => { const node = document.querySelector("#surface canvas"), { width, height } = node;
        const { data } = node.getContext("2d").getImageData(0, 0, width, height);
        return [[4, 4], [width - 5, 4], [4, height - 5], [width - 5, height - 5]]
          .map(([x, y]) => [...data.subarray(4 * (y * width + x), 4 * (y * width + x) + 3)]); }"""
    )
    playground = Playground(Settings(data="clouds"))
    playground.step(30)
    expected = playground.network.predict(np.array([[-1.2, 1.2], [1.2, 1.2], [-1.2, -1.2], [1.2, -1.2]]))
    # Blue for class 0, orange for class 1. At the ends of the other diagonal the answer may be near its boundary.
    for i in (1, 2):
        red, _, blue = corners[i]
        assert (red > blue) == (expected[i] == 1)


CSV_ERRORS = [
    ("", "There is no line with numbers"),
    ("x,y,label\n1,2,0\n1,two,1\n", "Line 3: the second column (y) should be a number, and is “two”."),
    ("1,2\n", "Line 1 has 2 columns; expected three: x, y and the class."),
    ("1,2,0\n\n1,2,0.5\n", "Line 3: the third column (the class) should be a whole number, and is 0.5."),
    ("1,2,0\n" * 5, "Every line is of class 0. At least two classes are needed."),
    ("".join(f"1,2,{i}\n" for i in range(7)), "The last column has 7 different classes"),
    ("1,2,0\n1,3,1\n", "There are 2 points; at least 4 are needed"),
    ("1,2,0\n1,3,1\n" * 600, "There are 1,200 points; at most 1,000 are taken."),
    ("1;<img src=x onerror=alert(1)>;0", "Line 1 has 5 columns"),
    ("1,<img>,0", "Line 1: the second column (y) should be a number, and is “<img>”."),
]


def test_wrong_lines_of_ones_own_data_are_named(browser_page: Opened) -> None:
    page = ready(browser_page("playground"))
    page.click("#own-box summary")
    for text, says in CSV_ERRORS:
        page.fill("#csv", text)
        page.click("#csv-read")
        assert says in page.inner_text("#csv-error"), text
    assert page.locator("img").count() == 0


def test_ones_own_numbers_are_trained_on(browser_page: Opened) -> None:
    page = ready(browser_page("playground"))
    page.click("#own-box summary")
    rng = np.random.default_rng(0)
    rows = [(x, 100 * y, 7 if x > y else 3) for x, y in rng.uniform(1, 5, (30, 2))]
    page.fill("#csv", "width;height;kind\n" + "\n".join(f"{x};{y};{label}" for x, y, label in rows))
    page.click("#csv-read")
    assert "30 points read" in page.inner_text("#csv-scale")
    assert "7 is class 1" in page.inner_text("#csv-scale")
    page.click("#own-train")
    until(page, "document.getElementById('set-data').value === 'own'")
    page.click("#step")
    step_is(page, 1)
    x = np.array([row[:2] for row in rows])
    scaled = 2 * (x - x.min(axis=0)) / (x.max(axis=0) - x.min(axis=0)) - 1
    points = tuple((float(a), float(b), int(row[2] == 7)) for (a, b), row in zip(scaled, rows, strict=True))
    playground = Playground(Settings(data="own", points=points))
    playground.step()
    assert shown_losses(page) == pytest.approx(losses_of(playground), rel=5e-3)


@pytest.mark.parametrize(("width", "look"), [(1280, "light"), (1000, "dark"), (390, "light")])
def test_classes_are_words_and_a_reload_asks_before_they_are_forgotten(
    browser_page: Opened, width: int, look: str
) -> None:
    page = ready(browser_page("playground", width=width, look=look))
    page.click("#own-box summary")
    page.fill("#csv", "x,y,kind\n1,2,dog\n2,1,cat\n1,3,dog\n3,1,cat\n2,3,<b>\n3,3,<b>\n")
    page.click("#csv-read")
    assert "<b> is class 0, cat is class 1, dog is class 2" in page.inner_text("#csv-scale")
    assert page.locator("#pens label").all_inner_texts()[:3] == ["<b>", "cat", "dog"]
    page.click("#own-train")
    until(page, "document.getElementById('set-data').value === 'own'")
    assert page.inner_text("#classes").split() == ["<b>", "cat", "dog"]
    until(page, "document.querySelector('.neuron[aria-label^=\"Output for cat\"]') !== null")
    page.click("#step")
    step_is(page, 1)
    asked = []
    page.once("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    page.reload()
    assert asked == ["beforeunload"]
    ready(page)
    page.reload()  # nothing to forget, so nothing is asked


def test_a_small_gradient_stays_within_its_chart(browser_page: Opened) -> None:
    page = ready(browser_page("playground"))
    below = page.evaluate(BELOW)
    assert below == {"ink": 0, "labels": 7}


BELOW = """async () => {
  const { curvesIn } = await import("/static/playground/curves.js");
  const holder = document.getElementById("gradients");
  const chart = curvesIn(holder, { logarithmic: true });
  const written = [];
  const fill = CanvasRenderingContext2D.prototype.fillText;
  CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
    written.push(text);
    fill.call(this, text, ...rest);
  };
  chart.draw([0, 1, 2], [[1, 1e-3, 1e-10], [1, 1e-9, 1e-30]]);
  CanvasRenderingContext2D.prototype.fillText = fill;
  const node = holder.querySelector("canvas");
  const ratio = node.width / node.clientWidth;
  // Between the number 0 and the last step, below the axis: no line may be there.
  const [x, y, width, height] = [80, node.clientHeight - 18, node.clientWidth - 180, 18].map((each) => each * ratio);
  const seen = node.getContext("2d").getImageData(x, y, width, height).data.filter((_, i) => i % 4 === 3);
  return { ink: seen.reduce((sum, each) => sum + (each > 0), 0), labels: written.length - 2 };
}"""


def test_points_are_drawn_by_keyboard_alone(browser_page: Opened) -> None:
    page = ready(browser_page("playground"))
    page.locator("#own-box summary").focus()
    page.keyboard.press("Enter")
    page.locator("#sheet canvas").focus()
    assert page.locator("#own-train").is_disabled()
    for key in ("Enter", "ArrowRight", "Enter", "ArrowUp", "Enter", "Delete", "Enter"):
        page.keyboard.press(key)
    assert page.inner_text("#own-count").startswith("3 points; at least 4 of 2 classes")
    page.locator("#pens input").nth(0).focus()
    page.keyboard.press("ArrowRight")  # class 1
    page.locator("#sheet canvas").focus()
    for key in ("ArrowDown", "ArrowDown", "Enter", "ArrowLeft", "Enter"):
        page.keyboard.press(key)
    assert page.inner_text("#own-count").startswith("5 points of 2 classes")
    page.locator("#own-train").focus()
    page.keyboard.press("Enter")
    until(page, "document.getElementById('set-data').value === 'own'")


def test_digits_show_what_is_taken_for_what(browser_page: Opened) -> None:
    query = "#data=digits&layers=128&activation=relu&initializer=he&learning_rate=0.003"
    page = ready(browser_page("playground", query=query))
    page.click("#step")
    step_is(page, 1)
    until(page, "document.querySelector('#surface canvas').getAttribute('aria-label').includes('after 1 step:')")
    assert "How often each digit" in page.locator("#surface canvas").get_attribute("aria-label")
    assert page.locator(".neuron").count() == 26
    left = """node => {
      const [ratio, middle] = [node.width / node.clientWidth, node.height / 2];
      const data = node.getContext("2d").getImageData(2 * ratio, middle - 24 * ratio, 48 * ratio, 48 * ratio).data;
      return new Set(data.filter((_, i) => i % 4 === 2)).size;
    }"""
    assert page.locator("#diagram canvas").evaluate(left) > 3  # the shades of an image


@pytest.mark.parametrize("data", ["xor", "clouds", "circles", "spirals"])
def test_the_page_trains_without_a_server(browser_page: Opened, data: str) -> None:
    page = browser_page("")  # a page that asks for nothing
    embedded = json.dumps(exported({"data": data, "dropout": 0.1, "learning_rate": 0.03}))

    def with_data(route: Any) -> None:
        answer = route.fetch()
        block = f'<script type="application/json" id="embedded">{embedded}</script>'
        route.fulfill(response=answer, body=answer.text().replace("</body>", f"{block}</body>"))

    page.route("**/playground", with_data)
    asked: list[str] = []
    page.on("request", lambda request: "/api/" in request.url and asked.append(request.url))
    page.goto(page.url + "playground")
    ready(page)
    assert page.inner_text("#computed") == "JavaScript in this page"
    assert page.locator("#set-stage").count() == 0
    assert page.input_value("#set-data") == data
    page.click("#step")
    step_is(page, 1)
    first = shown_losses(page)
    page.click("#begin")
    step_is(page, 0)
    page.click("#step")
    step_is(page, 1)
    assert shown_losses(page) == first
    page.select_option("#speed", "25")
    page.click("#run")
    until(page, "Number(document.getElementById('steps').textContent.replace(',', '')) > 300")
    choose(page, "batch_size", "50")
    assert int(page.inner_text("#steps").replace(",", "")) > 300
    page.click("#run")
    assert max(shown_losses(page)) < 0.8 * min(first)
    assert asked == []
