"""The report: one page, its words escaped, Plotly in it once, nothing fetched."""

import re

import plotly.graph_objects as go

from lab.config import RunConfig
from lab.report import Report, marked, settings_rows


def test_words_are_escaped_and_bold_is_kept():
    assert marked("a <b> **c & d** e") == "a &lt;b&gt; <b>c &amp; d</b> e"


def test_a_page_stands_alone():
    report = Report("A & B", "http://school.example/compare?a=<x>")
    report.heading("Numbers")
    report.table(["", "A"], [["recall@1", "**0.9**"]])
    for height in (300, 400):
        report.figure(go.Figure(go.Scatter(x=[1, 2], y=[3, 4])), 'said "so"', height)
    report.pictures([("<svg></svg>", "seed 0 <")])
    page = report.page()
    assert page.startswith("<!DOCTYPE html>")
    assert "<td><b>0.9</b></td>" in page
    assert "<svg></svg><figcaption>seed 0 &lt;</figcaption>" in page
    assert 'href="http://school.example/compare?a=&lt;x&gt;"' in page
    assert page.count("Plotly.newPlot(") >= 2
    assert page.count('"automargin":true') >= 4, "labels of the axes are not cut off"
    assert 4_000_000 < len(page) < 6_000_000, "Plotly is in it, and once"
    assert not re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=", page), "nothing is fetched"


def test_settings_are_told_once_where_all_agree():
    rows = settings_rows({"A": RunConfig(lr=0.01), "B": RunConfig(loss="NTXentLoss", lr=0.001)})
    told = {row[0]: row[1:] for row in rows}
    assert told["lr"] == ["0.01", "0.001"]
    assert told["data"] == ["mnist", ""]
    assert told["NTXentLoss.temperature"] == ["", "0.07"]
