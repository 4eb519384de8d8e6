"""What the panel says about forces and phases, from its own code run by Node."""

import json
import shutil
import subprocess

import pytest

from ui.live.panel import CLIENT

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="needs Node")
HELLO = {"classes": ["cat", "dog"], "classOf": [0, 0, 1, 1]}
PARTNER = {
    "sample": 2,
    "row": 1,
    "positive": False,
    "closer": False,
    "share": 0.6,
    "value": 0.5,
    "weight": -0.125,
    "back": -0.125,
    "slope": 0.8,
    "unit": [0.6, -0.8],
    "force": [0.12, -0.16],
    "size": 0.2,
}
TOLD = {
    "distance": "Euclidean distance of normalised embeddings",
    "inverted": False,
    "reason": "",
    "size": 0.25,
    "total": [0.2, -0.15],
    "dim": 2,
    "count": 3,
    "rest": 2e-16,
    "pulls": {"count": 1, "share": 0.4},
    "pushes": {"count": 2, "share": 0.6},
    "partners": [PARTNER],
    "others": {"count": 2, "share": 0.4, "arrow": [0, 0]},
    "loss_title": "Contrastive",
}


def says(call, *values):
    """The value of a JavaScript expression beside the panel's functions; `$0`, `$1` stand for the values."""
    code = "\n".join((CLIENT / name).read_text(encoding="utf-8") for name in ("2_theme.js", "7_forces.js"))
    for place, value in enumerate(values):
        call = call.replace(f"${place}", json.dumps(value))
    code += f"\nconsole.log(JSON.stringify({call}));"
    done = subprocess.run([NODE, "-"], input=code, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def lines(partner=None, **told):
    return says("formulaLines($0, $1)", {**PARTNER, **(partner or {})}, {**TOLD, **told})


def test_the_formula_has_the_numbers_of_the_pair_in_it():
    # force = -(-0.25) * 0.8 * (0.6, -0.8) = (0.12, -0.16), of size 0.2
    assert lines() == [
        "d = 0.5  (Euclidean distance of normalised embeddings)",
        "dL/dd = −0.25  (−0.125 with this point as the anchor, −0.125 as the other end)",
        "∂d/∂e = 0.8 · (0.6, −0.8)  (slope times unit direction)",
        "force = −dL/dd · ∂d/∂e = −(−0.25) · 0.8 · (0.6, −0.8) = (0.12, −0.16), of size 0.2",
    ]


def test_a_similarity_is_called_s_and_a_proxy_has_one_end():
    found = lines({"back": 0, "weight": -0.25}, inverted=True, distance="Cosine similarity")
    assert found[0] == "s = 0.5  (Cosine similarity)"
    assert found[1] == "dL/ds = −0.25"


def test_numbers_that_do_not_multiply_out_are_not_shown_as_a_product():
    # a distance that is not symmetric: the other end has another slope
    assert (
        "both ends added, each with its own slope = (0.3, 0.1)"
        in lines({"force": [0.3, 0.1], "size": 0.316})[3]
    )


def test_wide_embeddings_show_their_first_numbers_only():
    assert "(0.6, −0.8, …)" in lines(dim=8)[2]


def summary(**changes):
    return says("forcesSummary($0, $1)", {**TOLD, **changes}, HELLO)


def test_the_summary_names_sides_strongest_and_sum():
    assert summary() == (
        "1 pulls it closer with 40 % of all force, 2 push it away with 60 % of all force. "
        "The strongest: pushed by dog, sample 2, 60 %. All together: (0.2, −0.15), of size 0.25, minus the "
        "gradient of the loss (they differ by 2.0e-16 of its size)."
    )


def test_what_no_pair_accounts_for_is_named():
    assert "a part of size 0.1 comes from no pair, but from the embedding itself" in summary(rest=0.4)


def test_a_point_without_forces_and_one_without_pairs_say_so():
    assert summary(partners=[], count=0, size=0).startswith("No pair pulls or pushes it")
    reason = "The GE2E loss is no function of the distances of pairs."
    assert summary(partners=[], reason=reason) == reason + " It is of size 0.25."
    assert says("forcesSummary($0, $1)", {"reason": "There is no such point.", "partners": []}, HELLO) == (
        "There is no such point."
    )


@pytest.mark.parametrize(
    ("along", "words"),
    [(0.99, "straight along"), (0.5, "roughly along"), (0.0, "across"), (-0.8, "against")],
)
def test_where_the_update_took_it_is_held_against_the_force(along, words):
    moved = {"size": 0.2, "along": along, "arrow": [0, 0]}
    assert f"by 0.2, {words} its force (cosine" in says("movedWords($0, false)", {"moved": moved})
    why = "an encoder moves all points at once"
    assert (why in says("movedWords($0, false)", {"moved": moved})) == (along <= 0.95)
    assert why not in says("movedWords($0, true)", {"moved": moved})


def test_names_of_partners():
    assert says("partnerName($0, $1)", PARTNER, HELLO) == "dog, sample 2"
    assert says("partnerName($0, $1)", {"proxy": 0, "of_class": 1, "sample": None}, HELLO) == "proxy of dog"
    assert says("partnerName($0, $1)", {"proxy": 2, "of_class": 0, "sample": None}, HELLO) == (
        "proxy of cat (number 3)"
    )


def test_shares_are_never_rounded_to_nothing():
    assert says("[0, 0.0004, 0.0123, 1].map(shareWords)") == ["0 %", "less than 0.1 %", "1.23 %", "100 %"]


def test_a_phase_in_words():
    phase = {"number": 6, "of": 6, "name": "update", "step": 4, "caption": "Adam moves it."}
    assert says("phaseWords($0)", phase) == (
        "Step 4, phase 6 of 6, update. Adam moves it. That was the whole step: Phase begins the next."
    )
    assert (
        says("phaseWords($0)", {**phase, "number": 2, "name": "embed"})
        == "Step 4, phase 2 of 6, embed. Adam moves it."
    )
    assert (
        says("phaseWords($0)", {"reason": "This could not be worked out."}) == "This could not be worked out."
    )


def test_the_rings_are_those_of_the_phase():
    batch = {"rows": 32, "step": 5}
    assert says("ringWords($0, null)", batch).endswith("arrows are the force on each, to one scale.")
    assert (
        says("ringWords($0, { name: 'embed' })", batch) == "Rings are the 32 samples of the batch of step 5."
    )
    assert says("ringWords($0, { name: 'update' })", batch).endswith("lines lead to where it moved them.")
