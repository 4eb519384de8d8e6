"""Advice on Train and on Sweep: from the run's own distances, and taken with one click."""

import pytest

from lab.advice import advise
from losslib import catalog
from tests.ui.test_pages import healthy, opened, wait  # noqa: F401
from ui.advice import values_to_vary
from ui.server import scheduler


def test_on_train_a_sentence_and_a_figure_of_the_step_in_view(opened):  # noqa: F811
    at = opened("pages/train.py", steps="4", loss="TripletMarginLoss")
    run = scheduler().get(at.session_state["run.token"])
    run.attach("test")
    wait(lambda: run.state == "ready", run)
    at.get_by_key("advice").set_value(True).run()
    healthy(at, "advice")
    import torch

    frame = run.recording.latest
    expected = advise(
        "TripletMarginLoss",
        {},
        torch.from_numpy(frame.positions),
        torch.from_numpy(run.recording.labels).long(),
    )
    assert expected[0].option == "margin"
    assert expected[0].sentence() in [text.value for text in at.markdown]
    assert len(at.get("plotly_chart")) == len(expected)
    assert any("step 0" in caption.value for caption in at.caption)


def test_a_loss_without_pair_weights_says_so(opened):  # noqa: F811
    at = opened("pages/train.py", loss="ProxyAnchorLoss")
    run = scheduler().get(at.session_state["run.token"])
    wait(lambda: run.state == "ready", run)
    at.get_by_key("advice").set_value(True).run()
    healthy(at, "advice")
    assert "The Proxy Anchor loss weighs no pairs of samples, so no range can be advised." in [
        caption.value for caption in at.caption
    ]


def test_sweep_takes_the_values_that_fit_the_run_on_train(opened):  # noqa: F811
    at = opened("pages/train.py")
    run = scheduler().get(at.session_state["run.token"])
    wait(lambda: run.state == "ready", run)
    at.switch_page("pages/sweep.py")
    at.query_params.clear()
    at.query_params["sweep.losses"] = ["ContrastiveLoss", "TripletMarginLoss"]
    at.run()
    healthy(at, "sweep")
    key = "sweep.ContrastiveLoss.neg_margin"
    [button] = [button for button in at.button if button.key and button.key.startswith("advice of")]
    assert button.key == f"advice of {key}"
    said = [caption.value for caption in at.caption if caption.value.startswith("By the run on Train")]
    assert "of the pairs a gradient" in said[0]
    assert "never 10 to 60 %" in said[1], "no margin leaves so few triplets of an untrained run"
    button.click().run()
    healthy(at, "sweep")
    assert f"Vary {at.get_by_key(key).value}" == button.label
    assert len(at.get_by_key(key).value.split(",")) == 3


@pytest.mark.parametrize(
    ("loss", "name", "ends", "expected"),
    [
        ("TripletMarginLoss", "margin", (0.1, 0.5), ("0.1", "0.3", "0.5")),
        ("NTXentLoss", "temperature", (0.01, 1.0), ("0.01", "0.1", "1")),
        ("NTXentLoss", "temperature", (0.2, 0.2), ("0.2",)),
    ],
)
def test_values_over_the_range(loss, name, ends, expected):
    assert values_to_vary(ends, catalog.get(loss).params[name]) == expected
