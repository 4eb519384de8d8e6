"""The command of what is shipped as recorded."""

import zipfile

import numpy as np
import pytest

from lab import presets
from lab.recording import Recording
from lab.shipped import command, write


def test_what_is_shipped_is_packed_to_be_opened_quickly(tmp_path):
    recording, path = presets.get("collapse").recording(), tmp_path / "run.npz"
    write(recording, path)
    with zipfile.ZipFile(path) as archive:
        assert {entry.compress_type for entry in archive.infolist()} == {zipfile.ZIP_DEFLATED}
    read = Recording.load(path)
    assert [frame.step for frame in read.frames] == [frame.step for frame in recording.frames]
    assert np.array_equal(read.frames[-1].positions, recording.frames[-1].positions)
    assert np.array_equal(read.curves()["loss"], recording.curves()["loss"])


@pytest.mark.parametrize(("why", "status"), [("", 0), ("loss 3 is now 2, recorded is 1", 1)])
def test_a_check_says_why_it_is_stale_and_how_to_mend_it(why, status, capsys):
    made = []
    for arguments in ([], ["--check"]):
        assert command("lab.thing", lambda: made.append(1), lambda: why, arguments) == status
        assert capsys.readouterr().err == (f"{why}; python -m lab.thing --make\n" if why else "")
    assert not made
    assert command("lab.thing", lambda: made.append(1), lambda: why, ["--make"]) == 0
    assert made == [1]
