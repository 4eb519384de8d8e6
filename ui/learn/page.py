"""The Learn page: its parts, the list of lessons, and presenting."""

from __future__ import annotations

import streamlit as st

from lab.lessons import Lesson, get, lessons
from ui.learn import gallery, lesson, link, moment, room, trainer

# On a projector: larger type, no sidebar, no caption under the title.
PROJECTOR = """
[data-testid="stSidebar"], [data-testid="stExpandSidebarButton"], [data-testid="stHeader"] { display: none; }
.stMainBlockContainer { padding: 1.2rem 2.5rem; }
[data-testid="stMarkdownContainer"] p, [data-testid="stMarkdownContainer"] li,
[data-testid="stMarkdownContainer"] td, [data-testid="stWidgetLabel"] p { font-size: 1.45rem; }
[data-testid="stMarkdownContainer"] p { line-height: 1.4; }
[data-testid="stCaptionContainer"] p { font-size: 1.1rem; }
[data-testid="stCode"] code { font-size: 1.3rem; }
[data-testid="stHeading"] h1 { font-size: 1.6rem; padding: 0; }
[data-testid="stHeading"] h2 { font-size: 2.2rem; }
@media (max-width: 640px) { .stMainBlockContainer { padding: 1rem; } }
button p { font-size: 1.3rem; }
:focus-visible { outline: 3px solid currentColor; outline-offset: 2px; }
"""
KEYS_HELP = (
    "Tab and Enter lead everywhere, and buttons name their keys. In the picture: Space plays, arrows scrub, "
    "Home and End."
)


def show() -> None:
    """The whole page."""
    link.arrived()
    presenting = link.presenting()
    if presenting:
        st.html(f"<style>{PROJECTOR}</style>")
    part, name = link.part(), link.read(link.LESSON)
    if part == link.MOMENT:
        room.membership()
        if presenting:
            room.presenter(moment.name_of(moment.read_moment(link.moment_texts())[0]))
        moment.show()
        tools()
        return
    if not presenting:
        parts()
    room.membership()
    if presenting and part != link.FAILURES:
        room.presenter(name)
    if part == link.FAILURES:
        gallery.show()
        tools(rooms=False)
    elif part == link.MAKE:
        trainer.leave()
        moment.make()
    elif name:
        st.button("All lessons", icon=":material/arrow_back:", on_click=link.go, shortcut=link.shortcut("l"))
        lesson.show(get(name))
        tools()
    else:
        trainer.leave()
        overview()
        tools()


def parts() -> None:
    """Which part of the page."""
    st.session_state["learn part"] = link.part()
    st.segmented_control(
        "Part",
        list(link.PARTS),
        format_func=link.PARTS.__getitem__,
        key="learn part",
        on_change=change_part,
        label_visibility="collapsed",
    )


def change_part() -> None:
    """Another part was chosen; choosing the same again keeps it."""
    chosen = st.session_state.get("learn part")
    link.go(**({} if chosen in (None, link.LESSONS) else {link.PART: str(chosen)}))


def overview() -> None:
    """The list of lessons, with what is done."""
    done = link.done()
    st.markdown(
        "Ten short lessons. Each asks for a prediction, trains before your eyes, and marks the prediction "
        "from the run itself."
    )
    if done:
        st.progress(len(done) / len(lessons()), text=f"{len(done)} of {len(lessons())} done")
        st.caption("Your progress is in the address of this page and nowhere else: keep the link to keep it.")
    following = next((one.name for one in lessons() if one.name not in done), "")
    numbered = list(enumerate(lessons(), 1))
    for row in range(0, len(numbered), 2):
        for column, (number, one) in zip(st.columns(2), numbered[row : row + 2], strict=False):
            with column.container(border=True, height="stretch"):
                card(number, one, one.name in done, one.name == following)


def card(number: int, one: Lesson, is_done: bool, is_next: bool) -> None:
    """What the lesson teaches, with which losses, how long it takes, and whether it is done."""
    from losslib import catalog

    st.button(
        f"{number}. {one.title}{', done' if is_done else ''}",
        key=f"learn open {one.name}",
        type="primary" if is_next else "secondary",
        icon=":material/check_circle:" if is_done else ":material/school:",
        on_click=link.go,
        kwargs={link.LESSON: one.name},
        help="Opens the lesson",
    )
    st.markdown(one.aim)
    titles = " and ".join(catalog.get(name).title for name in one.losses)
    count = f"{len(one.runs)} runs" if len(one.runs) > 1 else "one run"
    st.caption(f"{titles}. About {one.minutes} min, {'shows' if one.recorded else 'trains'} {count}.")


def tools(rooms: bool = True) -> None:
    """Presenting on and off; and, where something is predicted, a room for the presenter."""
    if link.presenting():
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(KEYS_HELP)
            st.button("Stop presenting", on_click=link.write, kwargs={link.PRESENTING: ""})
        if rooms:
            room.opener()
    else:
        st.button(
            "Present",
            icon=":material/present_to_all:",
            on_click=link.write,
            kwargs={link.PRESENTING: "1"},
            help="For a projector: large type, fewer controls, all by keyboard, and a room for your class.",
        )
