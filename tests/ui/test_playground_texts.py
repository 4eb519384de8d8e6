"""What the board's own code computes without a server, run by Node: link texts, spaces, marker shapes."""

import json
import random
import shutil
import subprocess

import pytest

from lab.playground.placement import Placement, on_circle, read_text
from ui.live.panel import CLIENT as LIVE_CLIENT
from ui.playground.panel import CLIENT

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="needs Node")


def says(call):
    """The value of a JavaScript expression beside the board's functions."""
    files = (LIVE_CLIENT / "2_theme.js", CLIENT / "3_shapes.js")
    code = "\n".join(file.read_text(encoding="utf-8") for file in files)
    code += f"\nconsole.log(JSON.stringify({call}));"
    done = subprocess.run([NODE, "-"], input=code, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def objects(placement):
    pairs = zip(placement.points, placement.classes, strict=True)
    return json.dumps([{"x": x, "y": y, "c": c} for (x, y), c in pairs])


def drawn(seed, count):
    dice = random.Random(seed)
    points = tuple((dice.uniform(-2, 2), dice.uniform(-2, 2)) for _ in range(count))
    return Placement(points, tuple(dice.randrange(8) for _ in range(count)))


def test_the_board_writes_a_link_as_the_page_does():
    for placement in (drawn(1, 8), Placement(((-0.0001, 0.5), (2.0, -2.0), (1e-9, 0.12)), (0, 1, 7))):
        text = says(f"pointsText({objects(placement)})")
        assert text == placement.to_text()
        found, refusals = read_text(text)
        assert refusals == ()
        assert says(f"pointsText(parsePoints({json.dumps(text)}))") == found.to_text()


def test_both_put_points_on_the_circle_alike():
    placement = drawn(2, 6)
    settled = says(f"{objects(placement)}.map((point) => settle(point, 'circle'))")
    for found, expected in zip(settled, on_circle(placement).points, strict=True):
        assert (found["x"], found["y"]) == pytest.approx(expected, rel=1e-12)
    assert says("settle({ x: 0, y: 0, c: 1 }, 'circle')") == {"x": 1, "y": 0, "c": 1}
    assert says("settle({ x: 3, y: -9, c: 1 }, 'plane')") == {"x": 2, "y": -2, "c": 1}


def test_each_class_has_a_shape_of_its_own():
    paths = says("Array.from({ length: 8 }, (_, c) => shapePath(classShape(c), 8))")
    assert all(path.startswith("M") for path in paths)
    assert "ring" in says("Array.from({ length: 8 }, (_, c) => classShape(c))")
    assert len(set(paths)) == 8
