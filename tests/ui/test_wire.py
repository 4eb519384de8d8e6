"""The wire format against bytes packed by hand, field by field, as the module's text says."""

import json
import struct
import zlib

import numpy as np
import pytest

from lab.frame import BatchView, Frame, Glance, Histogram, PairShare, TermSummary
from losslib.types import Mark
from ui.live.wire import pack_frame, pack_glance, pack_hello, pack_images, pack_state, quantise


def messages(packet):
    """Version, kind, epoch and body of each message."""
    found, at = [], 0
    while at < len(packet):
        version, kind, epoch, length = struct.unpack_from("<BBHI", packet, at)
        found.append((version, kind, epoch, packet[at + 8 : at + 8 + length]))
        at += 8 + length
    assert at == len(packet)
    return found


def make_frame(**changes):
    values = {
        "step": 7,
        "positions": np.array([[-1.0, 0.0], [1.0, 1.0], [0.0, 0.5]], dtype=np.float32),
        "loss": 0.25,
        "active_share": 0.5,
        "histogram": Histogram(0.0, 2.0, np.array([3, 0]), np.array([1, 4])),
        "quality": {"recall_at_1": 0.75, "map_at_r": None, "alignment": 0.5, "uniformity": -2.0},
        "collapse": {"spread": 1.0, "effective_rank": 2.0, "mean_cosine": 0.125},
        "gradient_norm": 4.0,
        "learning_rate": 0.5,
        "batch": BatchView(
            np.array([5, 6, 9]),
            np.array([0, 0, 1]),
            np.arange(9, dtype=np.uint8).reshape(3, 3),
            (PairShare(5, 9, False, 0.5, -0.25, 0.75),),
        ),
        "terms": (TermSummary("pos_loss", 2, 1.5, 1),),
        "marks": (Mark("line", "negative", 1.0, "m_{neg}", "negative margin"),),
    }
    return Frame(**{**values, **changes})


def test_glance_is_what_the_format_says_byte_for_byte():
    frame = make_frame()
    glance = Glance(9, frame.positions, frame.histogram)
    [(version, kind, epoch, body)] = messages(pack_glance(3, glance, sent_ms=1234.5))
    assert (version, kind, epoch) == (1, 5, 3)
    expected = struct.pack("<III5fd", 9, 3, 2, -1.0, 0.0, 2.0 / 65535, 0.0, 2.0, 1234.5)
    expected += struct.pack("<4f", 3, 0, 1, 4)
    expected += struct.pack("<6H", 0, 0, 65535, 32768, 32768, 16384)
    assert body == expected


def test_frame_is_what_the_format_says_byte_for_byte():
    [(version, kind, epoch, body)] = messages(pack_frame(3, make_frame(), sent_ms=1234.5))
    assert (version, kind, epoch) == (1, 2, 3)
    scale = 2.0 / 65535
    numbers = [
        0.25,
        0.5,
        0.75,
        float("nan"),
        0.5,
        -2.0,
        1.0,
        2.0,
        0.125,
        4.0,
        0.5,
        -1.0,
        0.0,
        scale,
        0.0,
        2.0,
    ]
    head = struct.pack("<4I", 7, 3, 3, 2) + struct.pack("<16f", *numbers) + struct.pack("<d", 1234.5)
    assert len(head) == 88
    arrays = struct.pack("<4f", 3, 0, 1, 4)
    # 1.0 above the lower corner at 2 / 65535 a step is 32767.5 steps, which rounds to the even 32768.
    arrays += struct.pack("<6H", 0, 0, 65535, 32768, 32768, 16384)
    arrays += (
        struct.pack("<3I3H", 5, 6, 9, 0, 0, 1) + bytes(range(9)) + b"\0"
    )  # 55 bytes so far, padded to 56
    assert body[: len(head + arrays)] == head + arrays
    notes = json.loads(body[len(head + arrays) :].rstrip(b"\0"))
    assert notes == {
        "marks": [
            {
                "kind": "line",
                "side": "negative",
                "value": 1.0,
                "symbol": "m_{neg}",
                "label": "negative margin",
            }
        ],
        "insights": [],
        "terms": [{"name": "pos_loss", "count": 2, "total": 1.5, "active": 1}],
        "pairs": [{"anchor": 5, "other": 9, "positive": False, "value": 0.5, "share": 0.75}],
        "reach": None,
    }
    assert len(body) % 4 == 0


@pytest.mark.parametrize(("spread", "cosine", "sent"), [(0.0, 0.0, None), (0.0, 1.0, 1.0), (0.5, 0.0, 0.0)])
def test_zero_vectors_have_no_mean_cosine(spread, cosine, sent):
    frame = make_frame(collapse={"spread": spread, "effective_rank": 1.0, "mean_cosine": cosine})
    [(_, _, _, body)] = messages(pack_frame(1, frame))
    (got,) = struct.unpack_from("<f", body, 16 + 4 * 8)
    assert np.isnan(got) if sent is None else got == sent


def test_hello_carries_names_samples_and_classes():
    packet = pack_hello(2, {"classes": ["a", "b"]}, np.array([4, 2]), np.array([0, 1, 1, 0, 1]))
    [(_, kind, epoch, body)] = messages(packet)
    text = b'{"classes":["a","b"],"points":2,"samples":5}'
    assert (kind, epoch) == (1, 2)
    assert len(text) == 44
    assert body == struct.pack("<I", 44) + text + struct.pack("<2I5H", 4, 2, 0, 1, 1, 0, 1) + b"\0\0"


def test_state_and_images():
    [(_, kind, _, body)] = messages(pack_state(1, {"state": "diverged", "value": float("nan")}))
    assert (kind, json.loads(body.rstrip(b"\0"))) == (3, {"state": "diverged", "value": None})
    images = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    [(_, kind, _, body)] = messages(pack_images(1, images))
    count, height, width, length = struct.unpack_from("<4I", body)
    assert (kind, count, height, width) == (4, 2, 3, 4)
    assert zlib.decompress(body[16 : 16 + length]) == bytes(range(24))


def test_2000_points_stay_small():
    frame = make_frame(positions=np.zeros((2000, 2), dtype=np.float32))
    assert 8_000 <= len(pack_frame(1, frame)) < 9_000  # 4 bytes a point and a few hundred more


@pytest.mark.parametrize(
    ("positions", "low", "scale", "steps"),
    [
        ([[2.0, 3.0]], (2.0, 3.0), 1.0, [[0, 0]]),
        ([[0.0, 0.0], [0.0, 65535.0]], (0.0, 0.0), 1.0, [[0, 0], [0, 65535]]),
        ([[np.nan, 1.0], [1.0, 2.0], [2.0, 2.0]], (1.0, 2.0), 1 / 65535, [[0, 0], [0, 0], [65535, 0]]),
        ([[np.inf, np.inf]], (0.0, 0.0), 1.0, [[0, 0]]),
        (np.zeros((0, 2)), (0.0, 0.0), 1.0, np.zeros((0, 2))),
    ],
)
def test_quantise_keeps_one_scale_and_survives_what_is_not_finite(positions, low, scale, steps):
    got_low, got_scale, got = quantise(np.array(positions, dtype=np.float32))
    assert got_low == low
    assert got_scale == pytest.approx(scale)
    assert got.tolist() == np.array(steps).tolist()


def test_coordinates_come_back_within_half_a_step():
    positions = np.random.default_rng(0).normal(size=(500, 2)).astype(np.float32) * [3, 40]
    low, scale, steps = quantise(positions)
    back = np.array(low) + steps.astype(np.float64) * scale
    assert np.abs(back - positions).max() <= scale / 2 + 1e-9
