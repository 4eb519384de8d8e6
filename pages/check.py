"""Check: audit a loss, or look at embeddings of your own."""

from ui.page import page

TITLE = "Check"
GROUP = "Choose and check"
ORDER = 80
SUMMARY = "Audit a loss, or drop your own embeddings and labels and see what every loss makes of them."

with page(TITLE, SUMMARY):
    from ui.check import PREFIX, VIEWS, chosen_view, why_not
    from ui.refusals import checked_link

    with checked_link(PREFIX, why_not):
        if chosen_view() == VIEWS[0]:
            from ui.check import audit

            audit.show()
        else:
            from ui.check import embeddings

            embeddings.show()
