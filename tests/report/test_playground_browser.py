"""The playground in a real browser: it opens from a file, computes what the package computes, and can be handled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from report.access import find_violations
from report.plane import NAMES, draw_scenes, find_differences
from robagg.report import write_playground

pytestmark = pytest.mark.slow
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    file: Path = tmp_path_factory.mktemp("playground") / "playground.html"
    file.write_text(write_playground(), encoding="utf-8")
    return file.as_uri()


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    """The open page; at the end nothing may have been complained about or asked of the network."""
    context = browser.new_context(viewport={"width": 1200, "height": 1000})
    sheet, troubles = context.new_page(), []
    sheet.on("console", lambda said: troubles.append(said.text))
    sheet.on("pageerror", lambda error: troubles.append(str(error)))
    sheet.on("request", lambda asked: None if asked.url == address else troubles.append(asked.url))
    sheet.goto(address)
    yield sheet
    context.close()
    assert [trouble for trouble in troubles if not trouble.startswith("data:")] == []


def read_off(page: Any, rule: str) -> float:
    return float(page.locator(f"#table tr[data-rule={rule}] td").first.inner_text().replace("\u2212", "-"))


def test_its_rules_agree_with_the_package_on_twenty_random_scenes(page: Any) -> None:
    scenes = draw_scenes(20)
    answers = page.evaluate(
        """([scenes, names]) => scenes.map((scene) => Object.fromEntries(names.map((name) => {
          const { value, weights, taus } = playground.aggregate(name, scene.points, scene);
          return [name, { value, weights, tau: taus.at(-1) ?? null }];
        })))""",
        [scenes, list(NAMES)],
    )
    assert find_differences(scenes, answers, 1e-6) == []


def test_dragging_a_byzantine_point_moves_the_mean_and_not_tq(page: Any) -> None:
    page.click("[data-scene=far]")
    before = {rule: read_off(page, rule) for rule in ("tq", "mean")}
    byzantine = page.locator("#points .byzantine").first.bounding_box()
    page.mouse.move(byzantine["x"] + byzantine["width"] / 2, byzantine["y"] + byzantine["height"] / 2)
    page.mouse.down()
    page.mouse.move(byzantine["x"] + 20, byzantine["y"] + 120, steps=4)
    page.mouse.up()
    assert read_off(page, "tq") == before["tq"]
    assert read_off(page, "mean") != before["mean"]


def test_points_can_be_handled_with_the_keyboard(page: Any) -> None:
    first = page.locator("#points .point").first
    first.focus()
    name = first.get_attribute("aria-label")
    page.keyboard.press("ArrowRight")
    assert first.get_attribute("aria-label") != name
    playwright.expect(page.locator("#said[role=status]")).to_have_text(first.get_attribute("aria-label"))
    page.keyboard.press("Enter")
    playwright.expect(page.locator("#said")).to_contain_text("Byzantine point 1 at")
    page.keyboard.press("Enter")
    page.keyboard.press("PageDown")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("Honest point 2 ")
    page.keyboard.press("Delete")
    assert page.locator("#points .point").count() == 18
    page.click("#add-byzantine")
    assert page.locator("#points .byzantine").count() == 10
    assert page.locator("#f-out").inner_text() == "9", "f cannot follow beyond what n allows"


def test_touch_drags_a_point(browser: Any, address: str) -> None:
    context = browser.new_context(viewport={"width": 400, "height": 800}, has_touch=True, is_mobile=True)
    page = context.new_page()
    page.goto(address)
    page.locator("#plane").scroll_into_view_if_needed()
    points = page.locator("#points .point")
    box, names = points.first.bounding_box(), [point.get_attribute("aria-label") for point in points.all()]
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    session = context.new_cdp_session(page)
    for kind, at in (("touchStart", [(x, y)]), ("touchMove", [(x + 30, y - 40)]), ("touchEnd", [])):
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": a, "y": b} for a, b in at]})
    page.wait_for_timeout(100)
    moved = [point.get_attribute("aria-label") for point in points.all()]
    assert sum(a != b for a, b in zip(names, moved, strict=True)) == 1, "the one on top, where several lie"
    context.close()


def test_controls_change_what_is_seen(page: Any) -> None:
    page.check("#rule-krum")
    assert page.locator("#results .krum").count() == 1
    page.check("#nnm")
    assert page.locator("#mixed path").count() == 19
    page.uncheck("#nnm")
    page.fill("#step", "0")
    assert page.locator("#walks .stop.tq").count() == 1
    page.fill("#iterations", "5")
    page.fill("#step", "5")
    assert page.locator("#walks .stop.tq").count() == 6
    assert page.locator("#walks circle.tau").count() == 2
    page.click("#play")
    playwright.expect(page.locator("#play")).to_have_text("Play")
    assert page.locator("#step-out").inner_text() == "5"
    playwright.expect(page.locator("#summary")).to_contain_text("TQ lands nearest")
    assert "ra.Krum(f=9)" in page.locator("#python").text_content()


def test_every_scene_opens(page: Any) -> None:
    for button in page.locator(".presets button").all():
        button.click()
        assert button.get_attribute("aria-pressed") == "true"
        page.click("#redraw")
        assert page.locator("#table tr").count() >= 3


def test_light_and_dark_and_a_phone_width(browser: Any, address: str) -> None:
    grounds = {}
    for scheme in ("light", "dark"):
        page = browser.new_page(viewport={"width": 400, "height": 800}, color_scheme=scheme)
        page.goto(address)
        grounds[scheme] = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        page.click("#theme")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        page.close()
    assert grounds["light"] != grounds["dark"]


def test_what_can_be_operated_has_a_name(page: Any) -> None:
    nameless = page.evaluate(
        """() => [...document.querySelectorAll('button, input, select, [role=button], [tabindex]')].filter((node) => {
          const label = node.labels?.length ? node.labels[0].innerText : '';
          return !(node.getAttribute('aria-label') || label || node.innerText || '').trim();
        }).map((node) => node.outerHTML)"""
    )
    assert nameless == []


@pytest.mark.parametrize(("scheme", "width"), [("light", 1200), ("dark", 1200), ("light", 400), ("dark", 400)])
def test_axe_finds_no_violation(browser: Any, address: str, axe: str, scheme: str, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto(address)
    page.locator("details").evaluate("node => { node.open = true }")
    for scene in ("good", "near"):
        page.click(f"[data-scene={scene}]")
        assert find_violations(page, axe) == []
    page.close()


def test_names_of_results_do_not_lie_on_each_other(page: Any) -> None:
    for scene in page.locator(".presets button").all():
        scene.click()
        for name in NAMES:
            page.check(f"#rule-{name}")
        boxes = page.locator("#results .label").evaluate_all(
            "nodes => nodes.map((node) => node.getBBox()).map((b) => [b.x, b.y, b.x + b.width, b.y + b.height])"
        )
        for k, (left, top, right, low) in enumerate(boxes):
            for other in boxes[k + 1 :]:
                across, down = min(right, other[2]) - max(left, other[0]), min(low, other[3]) - max(top, other[1])
                assert across <= 0 or down <= 3, f"{scene.inner_text()}: letters have air of 3 pixels above and below"
