"""Uploads: whatever the bytes, an upload that is whole or a sentence."""

import io
import struct
from typing import Any

import numpy as np
from hypothesis import strategies as st

from lab.uploads import Upload, UploadError, UploadLimits, understand
from tests.fuzz.holds import holds, said

LIMITS = UploadLimits(megabytes=1, rows=200, kept=20, columns=30, classes=40)
ENDINGS = st.sampled_from([".csv", ".tsv", ".txt", ".npy", ".npz", ""])
NUMBERS = st.one_of(
    st.integers(-1000, 1000).map(str),
    st.floats(allow_nan=True, allow_infinity=True, width=32).map(str),
    st.sampled_from(["", "nan", "NA", "-", "1e400", "0x1", "1_0", "٣", "1,5", " 2 ", '"3"', "+4", ".5"]),
)
WORDS = st.one_of(st.text(max_size=6), st.sampled_from(["label", "cat", "007", 'a"b', "a,b", "\ufeff", "é"]))


@st.composite
def tables(draw: Any) -> bytes:
    """Text that looks like a table, mostly."""
    delimiter = draw(st.sampled_from([",", "\t", ";", "|", " ", "  "]))
    end = draw(st.sampled_from(["\n", "\r\n", "\r", "\n\n"]))
    width = draw(st.integers(1, 5))
    kinds = draw(st.lists(st.sampled_from([NUMBERS, NUMBERS, WORDS]), min_size=width, max_size=width))
    rows = [[draw(kind) for kind in kinds] for _ in range(draw(st.integers(0, 12)))]
    if draw(st.booleans()):
        rows.insert(0, draw(st.lists(WORDS, min_size=width, max_size=width)))
    if rows and draw(st.integers(0, 4)) == 0:
        rows[-1] = rows[-1][: draw(st.integers(0, width))]
    text = end.join(delimiter.join(row) for row in rows) + draw(st.sampled_from(["", end]))
    return text.encode(draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])), "replace")


@st.composite
def arrays(draw: Any) -> bytes:
    """npy and npz files, often damaged."""
    shape = draw(st.lists(st.integers(0, 6), min_size=0, max_size=3))
    kind = draw(st.sampled_from(["<f4", ">f8", "<f2", "<i8", "|b1", "<U3", "|S2", "<c8", "|O"]))
    array = np.zeros(shape, dtype=kind)
    file = io.BytesIO()
    if draw(st.booleans()):
        np.save(file, array, allow_pickle=True)
    else:
        if array.dtype == object:
            array = np.zeros(shape)
        np.savez_compressed(file, embeddings=array, labels=np.arange(len(array) if shape else 1))
    content = bytearray(file.getvalue())
    for _ in range(draw(st.integers(0, 3))):
        content[draw(st.integers(0, len(content) - 1))] = draw(st.integers(0, 255))
    return (
        bytes(content[: draw(st.integers(0, len(content)))])
        if draw(st.integers(0, 3)) == 0
        else bytes(content)
    )


HEADERS = st.text("{}()[]'\",: descrfotanshpTu1234567890<>|=f\n", max_size=120).map(
    lambda text: b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode() + bytes(16)
)
FILES = st.one_of(tables(), tables(), arrays(), HEADERS, st.binary(max_size=200))


@holds(weight=8, vectors=FILES, labels=st.none() | FILES, ending=ENDINGS, beside=ENDINGS)
def an_upload_is_whole_or_refused_in_a_sentence(
    vectors: bytes, labels: bytes | None, ending: str, beside: str
) -> None:
    """Never another error; what is understood fits together."""
    second = None if labels is None else (f"labels{beside}", labels)
    try:
        found = understand((f"vectors{ending}", vectors), second, limits=LIMITS)
    except UploadError as error:
        said(error)
        return
    check(found)


def check(found: Upload) -> None:
    count = len(found.vectors)
    assert 1 <= count <= LIMITS.kept
    assert found.vectors.ndim == 2
    assert 1 <= found.vectors.shape[1] <= LIMITS.columns
    assert np.isfinite(found.vectors).all()
    assert found.labels.shape == found.kept.shape == (count,)
    assert found.labels.min() >= 0
    assert found.labels.max() < len(found.class_names)
    assert (np.diff(found.kept) > 0).all()
    assert found.kept.max(initial=0) < found.rows
    assert len(set(found.class_names)) == len(found.class_names)
    assert all(isinstance(note, str) and note for note in found.notes)
    data = found.dataset()
    assert np.isfinite(data.inputs).all()
    assert len(data.train)


@holds(
    weight=2,
    rows=st.lists(
        st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=3, max_size=3),
        min_size=1,
        max_size=8,
    ),
    delimiter=st.sampled_from([",", "\t", ";", "|"]),
)
def numbers_come_back_as_they_were_written(rows: list[list[float]], delimiter: str) -> None:
    """A plain table of numbers is read exactly."""
    text = f"a{delimiter}b{delimiter}c\n" + "\n".join(delimiter.join(map(repr, row)) for row in rows)
    try:
        found = understand(("v.csv", text.encode()), limits=LIMITS)
    except UploadError as error:
        raise AssertionError(str(error)) from error
    expected = np.array(rows, dtype=np.float32)
    kept = expected[found.kept]
    first = kept[:, 1:] if any("counts the rows" in note for note in found.notes) else kept
    assert np.array_equal(found.vectors, first)
