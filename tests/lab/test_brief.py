"""Labels cut for legends: each stays unlike the others, and whole where it fits."""

import numpy as np

from lab.brief import brief
from lab.figures.compared_maps import compared_maps
from lab.figures.embedding_map import embedding_map
from lab.figures.literal import in_lines
from lab.figures.take_home import as_csv
from lab.moment_words import chosen_words

LONG = ["whale " + "north " * 60 + kind for kind in ("calf", "cow", "bull")]
ALIKE = ["https://example.org/labels/" + middle * 20 + "/species.html" for middle in "abc"]


def test_what_fits_stays_and_what_is_cut_keeps_its_ends():
    assert brief(["x" * 24, "north-atlantic-right-whale-calf"]) == ("x" * 24, "north-atlant…-whale-calf")
    assert all(len(name) <= 24 for name in brief(["y" * 300, *LONG]))


def test_names_whose_ends_are_alike_are_numbered_and_none_takes_anothers_place():
    assert brief(ALIKE) == (
        "https://ex…cies.html (1)",
        "https://ex…cies.html (2)",
        "https://ex…cies.html (3)",
    )
    taken = brief([ALIKE[0], "https://ex…cies.html (1)", *ALIKE[1:]])
    assert taken[1] == "https://ex…cies.html (1)", "a name that fits is never changed"
    assert len({*taken}) == 4
    cut = brief(ALIKE[:1])[0]
    assert brief([cut, ALIKE[0]]) == (cut, "https://ex…cies.html (1)")
    many = brief([f"{'a' * 30}{number}{'b' * 30}" for number in range(3000)])
    assert len({*many}) == 3000
    assert max(map(len, many)) <= 24


def test_a_legend_has_the_cut_name_and_the_hover_and_the_csv_the_whole():
    points, classes = np.arange(6.0).reshape(3, 2), np.arange(3)
    shown = brief(LONG)
    figure = embedding_map(points, classes, LONG)
    compared = compared_maps([points, points], classes, LONG, ["A", "B"])
    assert [trace.name for trace in figure.data] == list(shown)
    assert [trace.name for trace in compared.data] == [*shown, *shown]
    for trace, name in zip([*figure.data, *compared.data], LONG * 3, strict=True):
        hover = trace.hovertemplate
        assert hover.replace("<br>", " ").startswith(f"class {name}")
        assert max(map(len, hover.split("<br>"))) <= 60
    assert [row.split(",")[0] for row in as_csv(figure).splitlines()[1:]] == LONG


def test_maps_side_by_side_show_names_as_they_stand():
    points = np.zeros((1, 2))
    [trace] = compared_maps([points], np.zeros(1, int), ["<b>x</b>"], ["A"]).data
    assert trace.name == "&lt;b&gt;x&lt;/b&gt;"
    assert trace.hovertemplate.startswith("class &lt;b&gt;x&lt;/b&gt;,")


def test_a_hover_of_any_length_has_an_end():
    lines = in_lines("<z>" * 5000).split("<br>")
    assert len(lines) == 12
    assert lines[-1].endswith("…")


def test_sentences_have_the_cut_names():
    words = chosen_words(np.arange(3), np.arange(3), LONG)
    assert words == "3 points chosen: " + ", ".join(f"1 of class {name}" for name in brief(LONG)) + "."
