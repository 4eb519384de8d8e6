"""Uploads: whatever the bytes, an upload that is whole or a sentence."""

import io
import random
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from lab.uploads import Upload, UploadError, UploadLimits, understand
from tests.fuzz.holds import Draws, holds, said

LIMITS = UploadLimits(megabytes=1, rows=200, kept=20, columns=30, classes=40)
ENDINGS = st.sampled_from([".csv", ".tsv", ".txt", ".npy", ".npz", ""])
ODD_NUMBERS = [
    "",
    "nan",
    "NA",
    "-",
    "1e400",
    "0x1",
    "1_0",
    "٣",
    "1,5",
    " 2 ",
    '"3"',
    "+4",
    ".5",
    "inf",
    "-inf",
]
ODD_WORDS = ["label", "cat", "007", 'a"b', "a,b", "\ufeff", "é", "", '"', "a\nb", "\x00", "💥", "x" * 40]
ALPHABETS = ("abc xyz", "0123456789.,-+eE", "\t\r\n,;|\"' \x00\x1a", "éß中עא\u200f\u2028💥")
KINDS = ["<f4", ">f8", "<f2", "<i8", "|b1", "<U3", "|S2", "<c8", "|O", "<u1", ">i2", "<M8[s]"]
HEADER = "{}()[]'\",: descrfotanshpTu1234567890<>|=f\n"
Maker = Callable[[random.Random], bytes]


class Table(NamedTuple):
    """How a table is laid out; `strange` are texts that hypothesis drew."""

    delimiter: str
    end: str
    columns: list[str]
    rows: int
    headed: bool
    short: bool
    encoding: str
    strange: list[str]

    def bytes(self, draw: random.Random) -> bytes:
        rows = [[self._cell(kind, draw) for kind in self.columns] for _ in range(self.rows)]
        if self.headed:
            rows.insert(0, [self._cell("words", draw) for _ in self.columns])
        if rows and self.short:
            rows[-1] = rows[-1][: draw.randint(0, len(self.columns))]
        text = self.end.join(self.delimiter.join(row) for row in rows) + draw.choice(["", self.end])
        return text.encode(self.encoding, "replace")

    def _cell(self, kind: str, draw: random.Random) -> str:
        chance = draw.random()
        if kind == "numbers" and chance < 0.9:
            return number(draw)
        if chance > 0.97 and self.strange:
            return draw.choice(self.strange)
        if kind == "classes" and chance < 0.95:
            return draw.choice(["cat", "dog", "007", "7"])
        if chance < 0.5:
            return draw.choice(ODD_NUMBERS if kind == "numbers" else ODD_WORDS)
        alphabet = draw.choice(ALPHABETS)
        return "".join(draw.choice(alphabet) for _ in range(draw.randint(0, 6)))


class Array(NamedTuple):
    """An npy or npz file, and how it is damaged."""

    shape: list[int]
    kind: str
    zipped: bool
    damage: int
    cut: bool

    def bytes(self, draw: random.Random) -> bytes:
        array = np.zeros(self.shape, dtype=self.kind)
        if array.dtype.kind in "fui" and array.size:
            array[...] = np.array([draw.randint(-9, 9) % 250 for _ in range(array.size)]).reshape(self.shape)
        file = io.BytesIO()
        if not self.zipped:
            np.save(file, array, allow_pickle=True)
        else:
            plain = np.zeros(self.shape) if array.dtype == object else array
            np.savez_compressed(file, embeddings=plain, labels=np.arange(len(plain) if self.shape else 1))
        content = bytearray(file.getvalue())
        for _ in range(self.damage):
            content[draw.randrange(len(content))] = draw.randint(0, 255)
        return bytes(content[: draw.randint(0, len(content))] if self.cut else content)


class Header(NamedTuple):
    """An npy file whose header is anything."""

    text: str

    def bytes(self, draw: random.Random) -> bytes:
        letters = list(self.text)
        for _ in range(draw.randint(0, 3) if letters else 0):
            letters[draw.randrange(len(letters))] = draw.choice(HEADER)
        text = "".join(letters).encode()
        return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + bytes(16)


class Anything(NamedTuple):
    """Bytes that hypothesis drew, and others of its length."""

    content: bytes

    def bytes(self, draw: random.Random) -> bytes:
        return draw.choice([self.content, draw.randbytes(len(self.content))])


def number(draw: random.Random) -> str:
    """A number as people write it, of any size."""
    chance = draw.random()
    if chance < 0.4:
        return str(draw.randint(-1000, 1000))
    if chance < 0.8:
        return repr(draw.uniform(-1, 1) * 10 ** draw.randint(-40, 40))
    return draw.choice(ODD_NUMBERS) if chance > 0.97 else f"{draw.gauss(0, 1):.4f}"


TABLES = st.builds(
    Table,
    delimiter=st.sampled_from([",", "\t", ";", "|", " ", "  "]),
    end=st.sampled_from(["\n", "\r\n", "\r", "\n\n"]),
    columns=st.lists(st.sampled_from(["numbers", "numbers", "classes", "words"]), min_size=1, max_size=5),
    rows=st.integers(0, 12),
    headed=st.booleans(),
    short=st.sampled_from([False, False, False, True]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le"]),
    strange=st.lists(st.text(max_size=8), max_size=2),
)
ARRAYS = st.builds(
    Array,
    shape=st.lists(st.integers(0, 6), max_size=3),
    kind=st.sampled_from(KINDS),
    zipped=st.booleans(),
    damage=st.integers(0, 3),
    cut=st.sampled_from([False, False, False, True]),
)
HEADERS = st.builds(Header, st.text(HEADER, max_size=120))
FILES = st.one_of(TABLES, TABLES, ARRAYS, HEADERS, st.builds(Anything, st.binary(max_size=200)))


@holds(weight=8, vectors=FILES, labels=st.none() | FILES, ending=ENDINGS, beside=ENDINGS)
def an_upload_is_whole_or_refused_in_a_sentence(
    vectors: Any, labels: Any, ending: str, beside: str, draws: Draws
) -> None:
    """Never another error; what is understood fits together."""
    for draw in draws:
        first = (f"vectors{ending}", vectors.bytes(draw))
        second = None if labels is None else (f"labels{beside}", labels.bytes(draw))
        try:
            found = understand(first, second, limits=LIMITS)
        except UploadError as error:
            said(error)
            continue
        except Exception as error:
            raise AssertionError(f"{first}, {second}: {type(error).__name__}: {error}") from error
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
    count=st.integers(1, 8),
    delimiter=st.sampled_from([",", "\t", ";", "|"]),
    exact=st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=4),
)
def numbers_come_back_as_they_were_written(
    count: int, delimiter: str, exact: list[float], draws: Draws
) -> None:
    """A plain table of numbers is read exactly."""
    for draw in draws:
        single = [
            float(np.float32(draw.gauss(0, 1) * 10.0 ** draw.randint(-30, 30))) for _ in range(3 * count)
        ]
        drawn = [draw.choice(exact) if draw.random() < 0.2 else one for one in single]
        rows = [drawn[3 * i : 3 * i + 3] for i in range(count)]
        text = f"a{delimiter}b{delimiter}c\n" + "\n".join(delimiter.join(map(repr, row)) for row in rows)
        try:
            found = understand(("v.csv", text.encode()), limits=LIMITS)
        except UploadError as error:
            raise AssertionError(f"{text}: {error}") from error
        expected = np.array(rows, dtype=np.float32)
        kept = expected[found.kept]
        first = kept[:, 1:] if any("counts the rows" in note for note in found.notes) else kept
        assert np.array_equal(found.vectors, first), text
