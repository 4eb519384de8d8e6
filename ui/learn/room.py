"""A class in one room: what its members predict is counted, and the presenter sees the counts."""

from __future__ import annotations

from contextlib import suppress
from functools import cache

import streamlit as st

from lab.lessons import lessons
from lab.lessons.rooms import MEMBERS, Room, RoomError, Rooms
from lab.settings import sentence
from ui import focus
from ui.learn import link, member
from ui.sharing import show_code

MINE, FULL = "learn my room", "learn room full"
EVERY = 2.0  # seconds between two looks of the presenter


@cache
def rooms() -> Rooms:
    """The one set of rooms of this process."""
    return Rooms()


def predict(question: str, answer: str) -> None:
    """A prediction was given; where the link names a room it is counted there."""
    _tell(question, answer)


def finish(question: str) -> None:
    """The mark of a prediction was seen."""
    _tell(question, None)


def _tell(question: str, answer: str | None) -> None:
    code = link.read(link.ROOM)
    if not code or code == own_code():
        return
    try:
        if answer is None:
            rooms().finish(code, member.own_name(), question)
        else:
            rooms().predict(code, member.own_name(), question, answer)
    except RoomError as error:
        st.session_state[FULL] = str(error)


def own_code() -> str:
    """Code of the room that this session presents, "" without one."""
    mine: Room | None = st.session_state.get(MINE)
    return mine.code if mine else ""


def open_room() -> None:
    """This session presents a room; its code goes into the link."""
    try:
        st.session_state[MINE] = rooms().open()
        link.write(learn_room=own_code())
        focus.once("room")
    except RoomError as error:
        st.session_state[FULL] = str(error)


def close_room() -> None:
    """The room and its counts are gone."""
    mine: Room | None = st.session_state.pop(MINE, None)
    if mine is not None:
        rooms().close(mine.code, mine.key)
    link.write(learn_room="")


def membership() -> None:
    """Whether this session's predictions are counted, said at the top; a full room says so.

    The browser is asked who it is: the presenter after a reload, or a member that was here before.
    """
    code = link.read(link.ROOM)
    if code:
        mine: Room | None = st.session_state.get(MINE)
        told = member.ask(code, mine.key if mine is not None and mine.code == code else "")
        if told.key and not own_code():
            with suppress(RoomError):
                st.session_state[MINE] = rooms().taken(code, told.key)
        if code != own_code():
            enter(code, told.name)
    if said := st.session_state.pop(FULL, ""):
        st.warning(sentence(said))


def enter(code: str, name: str) -> None:
    """This session is a member of the room, by the name that its browser has told."""
    try:
        if name:
            rooms().join(code, name, member.take_name(name))
        else:
            rooms().counts(code)
        st.caption(
            f"Room {code}: your predictions are counted without a name, each browser once. They are gone "
            "with the room."
        )
    except RoomError as error:
        st.session_state[FULL] = str(error)


def opener() -> None:
    """The button that opens a room, where the presenter has none."""
    if not own_code():
        st.button(
            "Open a room",
            on_click=open_room,
            help=f"Your class opens a link, and you see live what it predicts. Up to {MEMBERS} browsers; "
            "only counts are kept, in memory, until you close the room.",
        )


def presenter(question: str) -> None:
    """The presenter's room, above the picture: the link for the class, live counts, close it.

    Args:
        question: name of the lesson, or of the moment, whose predictions are counted.
    """
    if not own_code():
        return
    texts = link.now()
    texts.pop(link.PRESENTING, None)
    address = link.address_of(texts)
    with st.container(border=True, key="room"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**Room {own_code()}.** The class opens this link:")
            with st.popover("QR code"):
                show_code(address)
            st.button("Close the room", on_click=close_room)
        st.code(address, language=None, wrap_lines=True)
        counts(question)


def counts(question: str) -> None:
    """What the class predicts, again every two seconds."""

    @st.fragment(run_every=EVERY)
    def look() -> None:
        try:
            found = rooms().look(own_code(), question)
        except RoomError as error:
            st.session_state.pop(MINE, None)
            st.caption(sentence(str(error)))
            return
        predicted = f"**{found.predicted}** of {found.members} in the room have predicted"
        marked = (
            f", **{found.finished}** have seen their mark"
            if question in {one.name for one in lessons()}
            else ""
        )
        st.markdown(f"{predicted}{marked}.")
        for answer, count in found.answers.items():
            st.progress(count / max(found.predicted, 1), text=f"{answer}: {count}")

    look()
