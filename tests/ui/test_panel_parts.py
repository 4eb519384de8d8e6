"""The panel's own code for motion, trails and selections, run by Node."""

import json
import shutil
import subprocess

import numpy as np
import pytest

from lab.pair_bins import PairBins
from ui.live.panel import CLIENT
from ui.live.wire import pack_links

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="needs Node")


def run(files, code):
    """What a script beside the panel's functions gives as its last expression `done`."""
    sources = [(CLIENT / name).read_text(encoding="utf-8") for name in files]
    script = "\n".join([*sources, code, "console.log(JSON.stringify(done));"])
    done = subprocess.run([NODE, "-"], input=script, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def shares(gap, draws, still=False, points=(5, 5)):
    """Shares of the way at drawings `draws` ms after the second of two moments, `gap` ms apart."""
    code = f"""
        let now = 1000;
        performance.now = () => now;
        const tween = new Tween();
        tween.aim({{ points: {points[0]} }}, false);
        now += {gap};
        tween.aim({{ points: {points[1]} }}, {json.dumps(still)});
        const start = now;
        const look = (at) => {{ now = start + at; return [tween.share, tween.moving]; }};
        const done = {json.dumps(draws)}.map(look);
    """
    return run(["4_tween.js"], code)


def test_moments_far_apart_are_joined_slowly_at_both_ends():
    # 240 ms apart, so it lasts 240 ms: at a quarter t = 1/4, 3 t^2 - 2 t^3 = 3/16 - 2/64 = 0.15625
    got = shares(240, [0, 40, 60, 100, 120, 160, 180, 220, 240])
    assert [share for share, _ in got] == pytest.approx(
        [smooth(at / 240) for at in (0, 40, 60, 100, 120, 160, 180, 220, 240)]
    )
    assert got[2][0] == pytest.approx(0.15625)
    assert [moving for _, moving in got] == [True] * 8 + [False]


def smooth(t):
    return 3 * t**2 - 2 * t**3


def test_a_glide_lasts_300_ms_at_most():
    got = shares(5000, list(range(0, 301, 30)))
    assert got[5][0] == pytest.approx(smooth(150 / 300))
    assert got[-1] == [1, False]


def test_frames_at_full_speed_reduced_motion_or_another_set_of_points_do_not_glide():
    assert shares(150, [0]) == [[1, False]]
    assert shares(1000, [0], still=True) == [[1, False]]
    assert shares(1000, [0], points=(5, 6)) == [[1, False]]


def test_a_machine_that_draws_too_rarely_shows_the_moment_at_once():
    assert shares(1000, [0, 60]) == [[0, True], [1, False]]


def test_a_trail_takes_as_many_frames_as_the_points_allow():
    code = """
        const frames = [...Array(30).keys()].map((step) => ({ step, points: 100 }));
        const before = (points) => frames.map((frame) => ({ ...frame, points }));
        const steps = (points, step) => trailOf(before(points), { step, points }, 16000).map((f) => f.step);
        const done = [steps(100, 20), steps(2000, 20), steps(9000, 20), steps(100, 3), steps(100, 40).length];
    """
    got = run(["0_parts.js", "7_trails.js"], code)
    assert got == [list(range(8, 21)), list(range(12, 21)), [18, 19, 20], [0, 1, 2, 3], 13]


# Two classes: samples 7 and 8 of class 0 at places 0 and 1, sample 9 of class 1 at place 2.
LINKS = """
    const index = [7, 8, 9];
    const links = { step: 4, positives: 1, count: 3, pairs: [0, 1, 0, 2, 1, 2], bins: [5, 5, 63] };
"""


def test_a_bin_leads_to_the_samples_at_the_ends_of_its_pairs():
    code = (
        LINKS
        + """
        const ends = (side, bin) => [...endsOf(links, { side, bin }, index)].sort();
        const done = [ends("positive", 5), ends("negative", 5), ends("negative", 63), ends("positive", 63)];
    """
    )
    assert run(["0_parts.js", "7_selection.js"], code) == [[7, 8], [7, 9], [8, 9], []]


def test_bars_count_the_pairs_with_an_end_in_the_selection():
    code = (
        LINKS
        + """
        const of = (bright) => { const b = barsOf(links, { kind: "box" }, bright);
            return [b.positive[5], b.negative[5], b.negative[63], b.shares.positive, b.shares.negative]; };
        const done = [of([1, 0, 0]), of([0, 0, 1]), of([0, 0, 0])];
    """
    )
    assert run(["0_parts.js", "7_selection.js"], code) == [
        [1, 1, 0, 1, 0.5],
        [0, 1, 1, 0, 1],
        [0, 0, 0, 0, 0],
    ]


def test_links_are_read_as_the_wire_format_says():
    pairs = np.array([[0, 1], [0, 2], [513, 2]], dtype=np.uint16)
    packet = pack_links(3, PairBins(4, 1, pairs, np.array([5, 6, 63], dtype=np.uint8)))
    code = f"""
        const bytes = new Uint8Array({list(packet)});
        const links = decodeLinks(bytes.buffer.slice(8));
        const done = {{ ...links, pairs: [...links.pairs], bins: [...links.bins], kind: bytes[1] }};
    """
    assert run(["0_parts.js", "7_selection.js"], code) == {
        "step": 4,
        "positives": 1,
        "count": 3,
        "pairs": [0, 1, 0, 2, 513, 2],
        "bins": [5, 6, 63],
        "kind": 8,
    }
