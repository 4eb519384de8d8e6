"""Names that people give, shown by Plotly as they stand: it reads tags, entities and %{...} as its own."""

import html


def literal(text: str) -> str:
    """The text as Plotly is to be given it; `html.unescape` has it back."""
    return html.escape(text, quote=False).replace("%{", "%&#123;")
