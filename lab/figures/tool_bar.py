"""Room above a chart whose legend stands there: the tool bar lies over its edge, on touch screens always."""

ABOVE = 66  # pixels: the bar, and a line of legend under it
ABOVE_TWO = 86  # and two lines of legend
