"""Home: what this is, the doors to what exists, and presets one click from running."""

from ui.page import page

TITLE = "Home"
SUMMARY = "What this is, and where to go"

with page("Loss Lab", "Contrastive and deep-metric-learning losses, live."):
    from ui.home import doors, introduction, presets, tell_refused

    tell_refused()
    introduction()
    doors()
    presets()
