"""The Anatomy page: opens on every kind of loss, follows its controls and link, and leads on."""

import pytest

from tests.ui.opening import opened_at

KINDS = (
    "TripletMarginLoss",
    "CircleLoss",
    "FastAPLoss",
    "SubCenterArcFaceLoss",
    "BarlowTwinsLoss",
    "GE2ELoss",
)


def opened(**query):
    return opened_at("anatomy", query)


def text_of(at):
    kinds = ("header", "subheader", "markdown", "caption")
    return " ".join(str(element.value) for kind in kinds for element in at.main.get(kind))


def links_of(at):
    return {link.proto.label: link.proto for link in at.main.get("page_link")}


def test_each_kind_of_loss_opens_whole():
    at = opened()
    for name in KINDS:
        at = at.get_by_key("anatomy.loss").set_value(name).run()
        assert not at.exception, name
        assert not at.error, name
        assert not at.warning, name
        assert len(at.get("plotly_chart")) == 3, name
        text = text_of(at)
        assert ("Similarity: larger is closer" in text) != ("Distance: smaller is closer" in text)
        assert "**Positive pair** at" in text
        assert "Arrows are the force on the free point" in text


def test_a_turned_margin_changes_the_numbers_and_the_link_to_train():
    at = opened(**{"anatomy.loss": "ContrastiveLoss"})
    assert "**Negative pair** at distance 0.8452: loss 1.155, gradient -1 (pushed apart)." in text_of(at)
    at = at.get_by_key("anatomy.ContrastiveLoss.neg_margin").set_value(0.5).run()
    text = text_of(at)
    # the held positive costs its distance 1; the negative is beyond the margin
    assert "**Negative pair** at distance 0.8452: loss 1, gradient 0 (no force)." in text
    assert "A negative pair has no gradient above 0.5." in text
    assert "$m_{neg} = 0.5$" in text
    train = links_of(at)["Train with this"]
    assert (train.page, train.query_string) == (
        "train",
        "loss=ContrastiveLoss&ContrastiveLoss.neg_margin=0.5",
    )
    assert links_of(at)["Open in Reference"].query_string == "reference.loss=ContrastiveLoss"


def test_a_similarity_where_a_distance_is_meant_is_warned_of():
    at = opened(**{"anatomy.loss": "ContrastiveLoss", "anatomy.distance": "CosineSimilarity"})
    assert at.header[0].value == "Similarity: larger is closer"
    warned = " ".join(one.value for one in at.warning)
    assert "margins and thresholds have to be chosen anew" in warned
    assert "Train takes the options along" in text_of(at)
    at = at.get_by_key("anatomy.loss").set_value("CircleLoss").run()
    assert at.get_by_key("anatomy.distance").value == "default"
    assert not at.exception


def test_a_warning_goes_with_the_options_that_earn_it():
    """Margins 1 and 0 are right for a similarity, so nothing is left to warn of but the other direction."""
    at = opened(
        **{
            "anatomy.loss": "ContrastiveLoss",
            "anatomy.distance": "CosineSimilarity",
            "anatomy.ContrastiveLoss.pos_margin": "1",
            "anatomy.ContrastiveLoss.neg_margin": "0",
        }
    )
    assert not at.exception
    [warning] = at.warning
    assert "larger is closer" in warning.value
    at = at.get_by_key("anatomy.ContrastiveLoss.pos_margin").set_value(0).run()
    at = at.get_by_key("anatomy.ContrastiveLoss.neg_margin").set_value(1).run()
    assert any("margins 0 and 1 suit a distance" in one.value for one in at.warning)


def test_a_wrong_link_is_told_and_the_default_shown():
    at = opened(
        **{
            "anatomy.loss": "NTXent",
            "anatomy.angle": "900",
            "anatomy.ContrastiveLoss.neg_margin": "abc",
            "anatomy.reducer": "DivisorReducer",
            "nonsense": "1",
        }
    )
    assert not at.exception
    said = at.warning[0].value
    for words in ("NTXentLoss", "angle must be", "neg_margin must be", "reducer must be", "'nonsense'"):
        assert words in said
    assert at.get_by_key("anatomy.loss").value == "ContrastiveLoss"
    assert len(at.get("plotly_chart")) == 3
    at = at.get_by_key("anatomy.class").set_value("B").run()
    assert not at.warning


def test_the_batch_is_said_and_the_run_of_the_session_is_used():
    at = opened(**{"anatomy.loss": "NTXentLoss", "anatomy.batch": "Train run"})
    assert "no Train run with embeddings, so the example batch" in text_of(at)
    at.switch_page("pages/train.py")
    for key in list(at.query_params):
        del at.query_params[key]
    at.query_params["data"] = "blobs"
    at.query_params["loss"] = "TripletMarginLoss"
    at.query_params["TripletMarginLoss.margin"] = "0.4"
    at.query_params["steps"] = "3"
    at = at.run()
    from ui.server import scheduler

    run = scheduler().get(at.session_state["run.token"])
    try:
        for _ in range(400):
            if run.recording is not None and run.recording.latest is not None:
                break
            at.run()
        at.switch_page("pages/anatomy.py")
        for key in list(at.query_params):
            del at.query_params[key]
        at = at.run()
        assert at.get_by_key("anatomy.loss").value == "NTXentLoss", "who comes back finds the loss they left"
        text = text_of(at)
        assert "The batch of the Train run has" in text
        assert "at step 0 (Triplet margin on " in text
        assert "One pair of the batch of the Train run slides" in text
        del at.session_state["left"]["Anatomy"]
        at.switch_page("home.py")
        at = at.run()
        at.switch_page("pages/anatomy.py")
        for key in list(at.query_params):
            del at.query_params[key]
        at = at.run()
        assert at.get_by_key("anatomy.loss").value == "TripletMarginLoss", "else the loss of the run"
        assert at.get_by_key("anatomy.TripletMarginLoss.margin").value == 0.4
    finally:
        scheduler().close(run.token)


@pytest.mark.parametrize("name", ["CenterLoss", "NPairsLoss"])
def test_a_loss_without_options_has_no_family(name):
    at = opened(**{"anatomy.loss": name})
    assert not at.exception
    assert len(at.get("plotly_chart")) == 2
    assert "has no option to vary" in text_of(at)
