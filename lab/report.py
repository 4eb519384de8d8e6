"""A comparison or a sweep on one page of HTML that opens anywhere without a network."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lab.figures.take_home import standing_alone

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from lab.config import RunConfig

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1d21; }
body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: 0.92rem; }
th, td { text-align: left; padding: 0.25rem 0.8rem 0.25rem 0; vertical-align: top; }
tr { border-bottom: 1px solid #d8dde2; }
.pictures { display: grid; grid-template-columns: repeat(auto-fill, minmax(14rem, 1fr)); gap: 1rem; }
.pictures figure { margin: 0; font-size: 0.85rem; } a { overflow-wrap: anywhere; } .note { color: #555d66; }
@media print { h2 { break-after: avoid; } }
"""


@dataclass
class Report:
    """The page as it grows, part by part.

    Args:
        title: of the page.
        link: where the app shows the same; "" for none.
    """

    title: str
    link: str = ""
    parts: list[str] = field(default_factory=list)
    _plotly: bool = field(default=False, repr=False)

    def heading(self, text: str) -> None:
        """A heading."""
        self.parts.append(f"<h2>{html.escape(text)}</h2>")

    def text(self, words: str, note: bool = False) -> None:
        """A paragraph; **bold** as in Markdown."""
        self.parts.append(f"<p{' class=note' if note else ''}>{marked(words)}</p>")

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """A table of texts; **bold** as in Markdown."""
        lines = ["<tr>" + "".join(f"<th>{marked(cell)}</th>" for cell in head) + "</tr>"]
        lines += ["<tr>" + "".join(f"<td>{marked(cell)}</td>" for cell in row) + "</tr>" for row in rows]
        self.parts.append(f'<div class="scroll"><table>{"".join(lines)}</table></div>')

    def figure(self, figure: go.Figure, words: str, height: int = 420) -> None:
        """A figure with its summary; the first one brings Plotly along."""
        drawn = standing_alone(figure).to_html(
            include_plotlyjs=not self._plotly,
            full_html=False,
            default_height=f"{height}px",
            config={"responsive": True},
        )
        self._plotly = True
        self.parts.append(f'<div role="img" aria-label="{html.escape(words, quote=True)}">{drawn}</div>')
        self.text(words, note=True)

    def pictures(self, drawings: Sequence[tuple[str, str]]) -> None:
        """Small drawings (SVG) side by side, each with its words."""
        figures = [
            f"<figure>{drawing}<figcaption>{html.escape(words)}</figcaption></figure>"
            for drawing, words in drawings
        ]
        self.parts.append(f'<div class="pictures">{"".join(figures)}</div>')

    def page(self) -> str:
        """The whole document."""
        link = ""
        if self.link:
            address = html.escape(self.link, quote=True)
            link = f'<p>The same in Loss Lab: <a href="{address}">{address}</a></p>'
        title = html.escape(self.title)
        return (
            f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<style>{STYLE}</style></head><body><h1>{title}</h1>{link}{''.join(self.parts)}</body></html>"
        )


def marked(words: str) -> str:
    """Words as HTML, **bold** kept."""
    return re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", html.escape(words))


def settings_rows(configs: Mapping[str, RunConfig]) -> list[list[str]]:
    """One row a setting: its name, and its value in each run, once where all agree.

    Args:
        configs: by name of the run.
    """
    texts = [config.to_settings(full=True) for config in configs.values()]
    names = dict.fromkeys(name for text in texts for name in text)
    rows = []
    for name in names:
        values = [text.get(name, "") for text in texts]
        rows.append([name, *([values[0]] if len(set(values)) == 1 else values)])
    return [row + [""] * (len(configs) + 1 - len(row)) for row in rows]
