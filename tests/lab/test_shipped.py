"""The command of what is shipped as recorded."""

import pytest

from lab.shipped import command


@pytest.mark.parametrize(("why", "status"), [("", 0), ("loss 3 is now 2, recorded is 1", 1)])
def test_a_check_says_why_it_is_stale_and_how_to_mend_it(why, status, capsys):
    made = []
    for arguments in ([], ["--check"]):
        assert command("lab.thing", lambda: made.append(1), lambda: why, arguments) == status
        assert capsys.readouterr().err == (f"{why}; python -m lab.thing --make\n" if why else "")
    assert not made
    assert command("lab.thing", lambda: made.append(1), lambda: why, ["--make"]) == 0
    assert made == [1]
