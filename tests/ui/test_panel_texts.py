"""What the panel says under its charts, from its own code run by Node: medians, the map's note, gauges."""

import json
import shutil
import subprocess

import pytest

from ui.live.panel import CLIENT

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="needs Node")
BINS = 64


def says(call):
    """The value of a JavaScript expression beside the panel's functions."""
    names = ("2_theme.js", "4_histogram.js", "4_medians.js", "5_curves.js", "7_texts.js")
    code = "\n".join((CLIENT / name).read_text(encoding="utf-8") for name in names)
    code += f"\nconsole.log(JSON.stringify({call}));"
    done = subprocess.run([NODE, "-"], input=code, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def summary(positive, negative, low=0.0, high=2.0, inverted=False):
    """The histogram's sentence for counts by bin."""
    sides = [[counts.get(k, 0) for k in range(BINS)] for counts in (positive, negative)]
    frame = {"bins": BINS, "histogram_low": low, "histogram_high": high}
    frame |= {"positive": sides[0], "negative": sides[1]}
    return says(f"histogramSummary({json.dumps(frame)}, {json.dumps({'inverted': inverted})})")


def test_a_median_in_the_first_bin_is_only_known_to_be_below_its_end():
    # all positives at 0.002, in a bin that ends at 2 / 64 = 0.03125
    text = summary({0: 100}, {40: 50, 41: 100, 42: 50})
    # of the negatives 50 lie below bin 41 (from 1.28125), and 50 of its 100 are needed: 1.296875
    assert text.startswith("Median distance of positive pairs below 0.032, of negative pairs 1.3; 0 % of")


def test_a_median_is_interpolated_inside_its_bin_and_rounded_to_the_bins():
    # 40 of 100 lie below bin 32 (from 1.0), and 10 of its 40 are still needed: 1 + 0.25 * 0.03125 = 1.0078
    # of the negatives 20 lie below that bin and a quarter of its 40: 30 of 100
    text = summary({31: 40, 32: 40, 33: 20}, {31: 20, 32: 40, 33: 40})
    assert text == (
        "Median distance of positive pairs 1.01, of negative pairs 1.02; "
        "30 % of negative pairs are at least as close as the median positive."
    )


def test_for_a_similarity_the_closer_part_of_the_bin_counts():
    # on -1 to 1 bin 32 begins at 0: the median is 0.25 of it, 0.75 of its 40 negatives and 40 more are closer
    text = summary({31: 40, 32: 40, 33: 20}, {31: 20, 32: 40, 33: 40}, -1.0, 1.0, True)
    assert text.startswith("Median similarity of positive pairs 0.01, of negative pairs 0.02; 70 % of")


def test_a_bin_that_holds_most_pairs_is_given_with_its_ends():
    text = summary({32: 100}, {32: 90, 10: 10}, -1.0, 1.0, True)
    assert text.startswith(
        "Median similarity of positive pairs between 0 and 0.032, of negative pairs between"
    )
    assert "; at most 90 % of negative pairs" in text
    together = summary({32: 100}, {32: 100}, -1.0, 1.0, True)
    assert together.endswith("; they share a bin, which cannot tell which are closer.")
    assert "positive pairs above 0.968," in summary({63: 10}, {3: 10}, -1.0, 1.0, True)


@pytest.mark.parametrize(
    ("at", "said"),
    [(0, "MAP@R 10 %."), (2, "MAP@R 30 % at step 4."), (3, "MAP@R 50 %.")],
)
def test_a_measure_of_an_earlier_step_is_told_with_its_step(at, said):
    frames = [
        {"step": 0, "recall_at_1": 0.2, "map_at_r": 0.1},
        {"step": 4, "recall_at_1": 0.4, "map_at_r": 0.3},
        {"step": 6, "recall_at_1": 0.6, "map_at_r": None},
        {"step": 9, "recall_at_1": 0.8, "map_at_r": 0.5},
    ]
    hello = {"quality_on": "held-out data", "chance": 0.1}
    text = says(f"qualitySummary({json.dumps(frames)}, {json.dumps(frames[at])}, {at}, {json.dumps(hello)})")
    recall = round(100 * frames[at]["recall_at_1"])
    assert text == f"On held-out data: recall@1 {recall} % (chance is 10 %), {said}"


def test_wide_bins_support_no_decimals():
    # bins of 2: the median lies 0.25 of bin 32 beyond 64
    assert "positive pairs 65, of" in summary({31: 40, 32: 40, 33: 20}, {3: 9, 4: 9, 5: 9}, 0.0, 128.0)


@pytest.mark.parametrize(
    ("xy", "scale", "note"),
    [
        ([0, 0, 0, 0], 1.0, "all at the origin: every embedding is the zero vector"),
        ([0, 1, 1, 0], 1.0, "on the unit circle"),
        ([0, 0, 1, 0], 1.0, "1 of them at the origin (zero vectors), the others on the unit circle"),
    ],
)
def test_zero_vectors_are_not_said_to_lie_on_the_circle(xy, scale, note):
    frame = {"points": 2, "x_low": 0, "y_low": 0, "scale": scale, "xy": xy}
    hello = {"dim": 2, "unit_circle": True, "map_note": "on the unit circle"}
    assert says(f"mapNote({json.dumps(frame)}, {json.dumps(hello)})") == note


def test_the_mean_cosine_of_zero_vectors_is_undefined():
    assert says("meanCosine({ points: 9, spread: 0, mean_cosine: NaN })") == [
        "-",
        "undefined: all embeddings are zero vectors",
    ]
    assert says("meanCosine({ points: 9, spread: 0, mean_cosine: 1 })") == ["1", "collapsed = 1"]
