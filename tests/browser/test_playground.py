"""Playground in a browser: drag a point, do the same by keyboard, add, remove, undo, step, and the link."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
import torch
from playwright.sync_api import expect

from losslib.distances import LpDistance
from losslib.losses import ContrastiveLoss

pytestmark = pytest.mark.browser
expect.set_options(timeout=30_000)
LINKED = "/playground?playground.losses=ContrastiveLoss&playground.losses=TripletLoss"


class Board:
    """The first picture, and what is around it."""

    def __init__(self, page):
        self.page = page
        self.play = page.locator(".play")
        self.value = page.locator(".value").first
        self.words = page.locator(".words").first
        self.status = self.play.get_by_role("status")

    def ready(self):
        expect(self.play).to_have_attribute("data-transport", "socket")
        expect(self.value).to_have_text(re.compile(r"^\d"))
        return self

    def point(self, name):
        return self.page.locator(".board").first.get_by_role("button", name=f"Point {name},")

    def middle(self, name):
        box = self.point(name).locator(".grip").bounding_box()
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

    def drag(self, name, right, down):
        x, y = self.middle(name)
        self.page.mouse.move(x, y)
        self.page.mouse.down()
        for k in range(1, 11):
            self.page.mouse.move(x + right * k / 10, y + down * k / 10)
        self.page.mouse.up()

    def press(self, name):
        self.play.get_by_role("button", name=name, exact=True).click()

    def linked_points(self):
        """Coordinates and classes as the address has them."""
        text = parse_qs(urlsplit(self.page.url).query)["playground.points"][0]
        rows = [[float(part) for part in point.split("~")] for point in text.split("_")]
        return torch.tensor([row[:2] for row in rows]), torch.tensor([int(row[2]) for row in rows])


def test_points_move_by_hand_and_by_keys_and_the_losses_follow(tab):
    page = tab(LINKED)
    board = Board(page).ready()
    former = board.value.inner_text()
    board.drag("B", 60, 40)
    expect(board.value).not_to_have_text(former)
    page.wait_for_url(re.compile("playground.points="))
    loss = ContrastiveLoss(distance=LpDistance(normalize_embeddings=False))
    assert float(board.value.inner_text()) == pytest.approx(float(loss(*board.linked_points())), rel=0.01)
    expect(page.locator(".free").first).to_have_text("Nowhere on this picture would B be left alone.")

    former = board.words.inner_text()
    board.point("C").focus()
    page.keyboard.press("Shift+ArrowUp")
    expect(board.point("C")).to_have_attribute("aria-label", re.compile(r"at 0\.95, -0\.15$"))
    expect(board.words).not_to_have_text(former)
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("1")
    expect(board.point("C")).to_have_attribute("aria-label", re.compile("class 1,"))
    expect(board.words).to_contain_text("3 of 3 pairs active")

    page.keyboard.press("Delete")  # three points are the least
    expect(board.play).to_have_attribute("data-points", "3")
    page.keyboard.press("+")
    expect(board.play).to_have_attribute("data-points", "4")
    expect(board.point("D")).to_be_focused()
    expect(board.words).to_contain_text("6 of 6 pairs active")
    page.keyboard.press("Delete")
    expect(board.play).to_have_attribute("data-points", "3")
    board.press("Undo")
    expect(board.play).to_have_attribute("data-points", "4")
    expect(board.point("D")).to_be_visible()

    board.press("Step")
    expect(board.status).to_have_text("step 1")
    board.press("Play")
    expect(board.status).to_have_text(re.compile("step ([2-9]|[1-9][0-9]+)"))
    board.press("Pause")
    board.press("Reset")
    expect(board.status).to_have_text("step 0")
    expect(board.point("C")).to_have_attribute("aria-label", re.compile(r"class 1, at 0\.95, -0\.15$"))


def test_a_link_opens_the_same_picture_on_a_narrow_dark_screen(chromium, server):
    context = chromium(viewport={"width": 400, "height": 900}, color_scheme="dark")
    try:
        page = context.new_page()
        page.goto(
            f"{server.url}{LINKED}&playground.space=circle&playground.points=1~0~1_1~0~1_0~1~2"
            "&playground.selected=C&playground.follow=TripletLoss&playground.rate=0.3"
        )
        board = Board(page).ready()
        expect(board.value).to_have_text("0")  # A and B coincide, C is beyond the margin
        expect(page.locator(".free").first).to_contain_text(
            "67 % of all directions (shaded) the whole loss is 0"
        )
        expect(page.locator(".which").nth(1)).to_have_text("Cosine similarity: larger is closer.")
        assert page.locator(".play .follow").evaluate("select => select.selectedOptions[0].text") == "Triplet"
        assert page.locator(".play .rate").evaluate("select => select.value") == "0.3"
        main = page.get_by_test_id("stMain")
        assert main.evaluate("main => main.scrollWidth <= main.clientWidth")
        assert page.get_by_test_id("stAlert").count() == 0
    finally:
        context.close()
