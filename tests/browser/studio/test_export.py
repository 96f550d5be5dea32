"""Exported pages in a real browser, opened as files: they compute what the library does, and ask for nothing."""

from __future__ import annotations

import numpy as np
import pytest

from groundup import inside
from groundup.studio.digits import networks
from groundup.studio.export import export
from shared.contract import load_stage
from shared.data.datasets import load_dataset
from tests.browser.studio.conftest import LOOKS, contrast_failures, scrolls_sideways
from tests.browser.studio.test_digits import THREE, draw
from tests.browser.studio.test_kernel import number_after
from tests.groundup.studio.digits.made_runs import a_run


@pytest.fixture
def opened_file(chromium, tmp_path):
    """opened_file("digits", options): the exported page, opened as a file without a network."""
    contexts, wrong = [], []

    def opened(name, options=None, width=1280, look="light"):
        export(name, tmp_path / f"{name}.html", options or {})
        context = chromium.new_context(viewport={"width": width, "height": 900}, color_scheme=look, offline=True)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: said.type in ("error", "warning") and wrong.append(f"{said.type}: {said.text}"))
        page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
        own = (tmp_path / f"{name}.html").as_uri()
        page.on("request", lambda asked: asked.url.startswith((own, "data:", "blob:")) or wrong.append(asked.url))
        page.goto(own)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert wrong == []


ASKED = """async drawings => {
  const { offline } = await import("digits/offline.js");
  const { embedded } = await import("common/embedded.js");
  const source = offline(embedded());
  return Promise.all(drawings.map(async pixels => {
    const [answer] = await source.answers("default", pixels);
    const reasons = await source.reasons("default", pixels);
    const layers = reasons.layers.map(each => [...each.values]);
    return { ...answer, winner: reasons.winner, rival: reasons.rival, layers, pull: [...reasons.pull.values] };
  }));
}"""


@pytest.mark.parametrize("activation", ["shipped", "relu", "tanh", "sigmoid", "leaky_relu", "softmax"])
def test_the_forward_pass_in_javascript_is_stage_2s(opened_file, tmp_path, activation):
    options, notes = {}, {"normalisation": {"mean": 0.13, "deviation": 0.31}}
    if activation != "shipped":
        from shared.architectures import mlp

        options = {"run": a_run(tmp_path / "run", mlp([784, 9, 7, 10], activation), notes)}
    page = opened_file("digits", options)
    path = networks.checkpoint_of(options["run"]) if options else networks.SHIPPED
    trained = networks.opened(path, "one")
    test = load_dataset().test.x[:20]
    found = page.evaluate(ASKED, np.rint(test * 255).astype(int).tolist())
    parameters, name = trained.checkpoint.parameters, trained.checkpoint.activation
    x = trained.learned(test)
    stage = load_stage("numpy")
    scores = stage.network.Network.from_parameters(parameters, activation=name).forward(x)
    np.testing.assert_allclose([each["scores"] for each in found], scores, rtol=1e-5, atol=1e-5)
    probabilities = stage.activations.softmax(scores)
    np.testing.assert_allclose([each["probabilities"] for each in found], probabilities, rtol=0, atol=1e-5)
    order = np.argsort(-scores, axis=1)
    assert [[each["winner"], each["rival"]] for each in found] == order[:, :2].tolist()
    for layer, outputs in enumerate(inside.hidden_activations(parameters, name, x)):
        np.testing.assert_allclose([each["layers"][layer] for each in found], outputs, rtol=1e-5, atol=1e-5)
    pull = inside.saliency(parameters, name, x, order[:, 0]) - inside.saliency(parameters, name, x, order[:, 1])
    np.testing.assert_allclose([each["pull"] for each in found], pull, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("width", "look"), LOOKS)
def test_a_digit_is_drawn_and_answered_without_a_server(opened_file, width, look):
    page = opened_file("digits", width=width, look=look)
    page.wait_for_selector("#bars li:nth-child(10)")
    draw(page, THREE)
    page.wait_for_selector("body[data-done]")
    assert page.inner_text("#answer").startswith("It is a 3")
    assert page.locator("#nearest canvas").count() == 8
    assert page.locator("#floors").is_hidden()
    assert page.locator("#own").is_hidden()
    assert not scrolls_sideways(page)
    assert contrast_failures(page) == []


@pytest.mark.parametrize(("width", "look"), LOOKS)
def test_the_playground_trains_without_a_server(opened_file, width, look):
    page = opened_file("playground", {"data": "xor"}, width, look)
    page.wait_for_selector("#computed:has-text('JavaScript')")
    page.get_by_role("button", name="Step", exact=True).click()
    page.wait_for_selector("#steps:text-is('1')")
    assert page.locator("#set-data").input_value() == "xor"
    assert not scrolls_sideways(page)
    assert contrast_failures(page) == []


@pytest.mark.parametrize(("width", "look"), LOOKS)
def test_a_walk_through_a_kernel_is_read_without_a_server(opened_file, width, look):
    page = opened_file("kernel", {"walk": "guard"}, width, look)
    page.wait_for_selector("text=Element by element: the last threads find nothing to do")
    assert not scrolls_sideways(page)
    assert contrast_failures(page) == []


def test_a_page_that_would_ask_for_something_is_stopped_by_its_policy(chromium, tmp_path):
    export("digits", tmp_path / "digits.html", {})
    page = chromium.new_page()
    page.goto((tmp_path / "digits.html").as_uri())
    stopped = page.evaluate(
        """async () => {
          const heard = new Promise(done =>
            addEventListener("securitypolicyviolation", each => done(each.effectiveDirective)));
          fetch("http://127.0.0.1:9/").catch(() => {});
          return heard;
        }"""
    )
    page.close()
    assert stopped == "connect-src"


@pytest.mark.parametrize(("width", "look"), LOOKS)
def test_a_walk_through_a_kernel_and_its_race_need_no_server(opened_file, width, look):
    page = opened_file("kernel", {"walk": "tiles_race"}, width, look)
    page.wait_for_selector("#race:not([hidden])")
    assert "runs ahead of the others" in page.inner_text("#race")
    assert "should give" in page.inner_text("#now")
    assert not page.is_visible("#chooser")
    page.locator("#race button", has_text="Put the barrier back").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#race", state="hidden")
    page.locator("#title").click()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("End")
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((32, 32)).astype(np.float32) for _ in range(2))
    assert number_after(page.inner_text("#now"), "c[0, 1]") == pytest.approx((a.astype(float) @ b)[0, 1], rel=1e-5)
    page.locator("#source button", has_text="Take this barrier away").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#race:not([hidden])")
    assert not scrolls_sideways(page)
    assert contrast_failures(page) == []
