"""Names that people give, shown by Plotly as they stand: it reads tags, entities and %{...} as its own."""

import html
import textwrap

WIDTH, LINES = 36, 12  # what a hover box has room for on a narrow page


def literal(text: str) -> str:
    """The text as Plotly is to be given it; `html.unescape` has it back."""
    return html.escape(text, quote=False).replace("%{", "%&#123;")


def in_lines(text: str) -> str:
    """A text of any length as `literal`, in lines for a hover box."""
    return "<br>".join(map(literal, textwrap.wrap(text, WIDTH, max_lines=LINES, placeholder="…") or [""]))
