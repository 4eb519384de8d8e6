"""Files without end or with damage inside: refused in a sentence, before memory is spent on them."""

import io
import tracemalloc

import numpy as np
import pytest

from lab.uploads import UploadError, understand


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"1," * 2_000_000, "line 1 has more than 1,000,000 characters; put one vector a line"),
        (b"1 " * 2_000_000, "line 1 has more than 1,000,000 characters"),
        ((b"1," * 200_000 + b"\n") * 6, "200,001 columns; at most 4,096"),
    ],
)
def test_a_line_without_end_is_refused_before_its_cells_are_made(content: bytes, words: str) -> None:
    tracemalloc.start()
    with pytest.raises(UploadError, match=words):
        understand(("line.csv", content))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6  # two million cells would take more than 100 MB


def test_text_with_characters_that_do_not_exist_is_a_sentence() -> None:
    file = io.BytesIO()
    np.save(file, np.array(["ab", "cd"]))
    broken = file.getvalue()[:-4] + (0x110000).to_bytes(4, "little")  # one beyond the last character there is
    with pytest.raises(UploadError, match="characters that do not exist"):
        understand(("labels.npy", broken))


@pytest.mark.parametrize("change", [(b"'<f4'", b"'<f1'"), (b"(2, 3)", b"(" + b"9" * 4400 + b",)")])
def test_a_damaged_header_is_a_sentence(change: tuple[bytes, bytes]) -> None:
    file = io.BytesIO()
    np.save(file, np.zeros((2, 3), dtype=np.float32))
    head, body = file.getvalue()[10:128].replace(*change), file.getvalue()[128:]
    content = b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + body
    with pytest.raises(UploadError, match="damaged header"):
        understand(("v.npy", content))
