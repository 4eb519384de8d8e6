"""Run files that people bring: what was saved opens as it was, what does not fit is refused."""

import io
import json
import zipfile

import numpy as np
import pytest

from lab.opened import MAX_FILE, as_file, file_name, open_run
from losslib.errors import ParameterError


@pytest.fixture(scope="module")
def content(small, finished):
    return as_file(finished(small(steps=4, seed=3)).recording)


def tampered(content, **changes):
    """The file with arrays replaced: a name to a function of the array, or of the header's dict."""
    with np.load(io.BytesIO(content)) as file:
        arrays = {name: file[name] for name in file.files}
    for name, change in changes.items():
        if name == "header":
            head = json.loads(arrays["header"].tobytes())
            change(head)
            arrays["header"] = np.frombuffer(json.dumps(head).encode(), np.uint8)
        else:
            arrays[name] = change(arrays[name])
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def test_what_was_saved_opens_as_it_was(content, small, finished):
    opened, whole = open_run(content), finished(small(steps=4, seed=3)).recording
    assert opened.equals(whole)
    assert opened.config == whole.config
    assert opened.notes == ()
    assert file_name(opened) == "blobs-ContrastiveLoss-seed3-step4.losslab.npz"


def test_another_version_is_said(content):
    other = tampered(content, header=lambda head: head["provenance"].update(torch="1.0", device="cuda"))
    assert any("Made with torch 1.0, here it is" in note for note in open_run(other).notes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"paths": lambda a: a[:, :-1]}, "damaged"),
        ({"paths": lambda a: a[..., :-1]}, "damaged"),
        ({"floats": lambda a: a[:, :-1]}, "damaged"),
        ({"floats": lambda a: a.astype(np.float32)}, "damaged"),
        ({"labels": lambda a: a[:-1]}, "points and labels differ in number"),
        ({"labels": lambda a: (a + 1) % 4}, "other labels"),
        ({"probe": lambda a: a + 10_000}, "samples beyond the 400 there are"),
        ({"batch_index": lambda a: a - 1000}, "samples beyond"),
        ({"batch_labels": lambda a: a + 9}, "classes that there are not"),
        ({"batch_weights": lambda a: a[:, :5]}, "the batch of step 0"),
        ({"negative": lambda a: a[:, :-2]}, "the histogram of step 0"),
        ({"extent": lambda a: a * np.nan, "circle": lambda a: a & False}, "the map of step 0"),
        ({"curve_loss": lambda a: a[:-1]}, "curves leave out a frame"),
        (
            {"header": lambda head: head["frames"].clear(), "floats": lambda a: a[:, :0]},
            "there are no frames",
        ),
        ({"header": lambda head: head["frames"][1].update(step=0)}, "steps are out of order"),
        ({"header": lambda head: head["frames"][1].update(loss="a")}, "damaged"),
        ({"header": lambda head: head["frames"][1].update(step=1.5)}, "damaged"),
        ({"header": lambda head: head["class_names"].reverse()}, "classes have other names"),
        ({"header": lambda head: head["provenance"].update(torch="[a](http://b)")}, "not said properly"),
        ({"header": lambda head: head["config"].update(loss="NoLoss")}, "no loss is called 'NoLoss'"),
        ({"header": lambda head: head["config"].update(lr=-1)}, "lr must be"),
        ({"header": lambda head: head.update(format=99)}, "format 1 or 2 or 3 is read here, got 99"),
        ({"header": lambda head: head.update(state="<b>")}, "state is unknown"),
        ({"header": lambda head: head.update(provenance=[])}, "not a run file, or it is damaged"),
    ],
)
def test_what_does_not_fit_is_refused(content, changes, words):
    with pytest.raises(ParameterError) as caught:
        open_run(tampered(content, **changes))
    assert words in str(caught.value)


def test_no_run_file_at_all(content):
    for junk in (b"", b"hello", content[: len(content) // 2], content[:200] + bytes(len(content) - 200)):
        with pytest.raises(ParameterError, match="run file"):
            open_run(junk)
    with pytest.raises(ParameterError, match=r"at most 20 MB"):
        open_run(bytes(MAX_FILE + 1))
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.npy", bytes(61_000_000))
    with pytest.raises(ParameterError, match="61 MB unpacked"):
        open_run(bomb.getvalue())


def test_packings_that_would_blow_up_are_refused(content):
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("header.npy", bytes(61_000_000))
    assert len(bomb.getvalue()) < 20_000
    with pytest.raises(ParameterError, match="61 MB unpacked"):
        open_run(bomb.getvalue())
    greedy = bytearray(content)
    for entry in zipfile.ZipFile(io.BytesIO(content)).infolist():
        name = len(entry.filename)
        at = entry.header_offset + 30 + name + 5
        assert int.from_bytes(greedy[at : at + 4], "little") == 1 << 23, "8 MiB"
        greedy[at : at + 4] = (1 << 31).to_bytes(4, "little")
    with pytest.raises(ParameterError, match="more than 16 MB of memory"):
        open_run(bytes(greedy))
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("header.npy", bytes(100))
    with pytest.raises(ParameterError, match="packed in a way"):
        open_run(other.getvalue())
    claimed = bytearray(bomb.getvalue())  # says of itself that it unpacks to 100 bytes
    place = claimed.rindex(b"PK\x01\x02") + 24
    claimed[place : place + 4] = (100).to_bytes(4, "little")
    with pytest.raises(ParameterError, match="run file"):
        open_run(bytes(claimed))


def test_pickled_arrays_are_not_read(content):
    other = tampered(content, labels=lambda a: np.array([{"code": 1}], dtype=object))
    with pytest.raises(ParameterError, match="damaged"):
        open_run(other)
