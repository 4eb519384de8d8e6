"""Embeddings that somebody brings: what was understood, and what losses and measures make of them."""

from __future__ import annotations

from typing import Any

import streamlit as st

from datasets import file
from lab.config import RunConfig
from lab.uploads import Upload, UploadError, UploadLimits, understand
from lab.uploads.read import ENDINGS
from ui.check.sections import sections
from ui.errors import explain
from ui.places import place
from ui.reference import plain

FILES, UPLOAD, COLUMN, SOURCE = "check files", "check upload", "check label column", "check source shown"
REFUSED = "check refused"
MINE, EXAMPLE = "my files", "an example: handwritten digits, pixels as vectors"
AUTOMATIC, NONE = "chosen automatically", "no labels"


def show() -> None:
    """Where the embeddings come from, what was understood, and what is seen in them."""
    with place():
        upload = chosen()
    if upload is None:
        return
    with place():
        understood(upload)
        doors(upload)
    sections(upload)


def chosen() -> Upload | None:
    """The example, or what was dropped; it stays when the page is left and found again."""
    have = st.session_state.get(UPLOAD) is not None
    source = st.segmented_control(
        "Embeddings",
        [EXAMPLE, MINE],
        default=st.session_state.get(SOURCE, MINE if have else EXAMPLE),
        required=True,
    )
    st.session_state[SOURCE] = source
    if source == EXAMPLE:
        return example()
    return dropped()


@st.cache_data(max_entries=1, show_spinner=False)
def example() -> Upload:
    """Scikit-learn's digits as vectors of 64 pixels."""
    import io

    import numpy as np

    import datasets

    data = datasets.load("digits")
    file = io.BytesIO()
    np.savez(file, embeddings=data.inputs.reshape(len(data), -1), labels=data.labels)
    return understand(("digits.npz", file.getvalue()))


def dropped() -> Upload | None:
    """The uploaders, and the upload as understood. The files are read once."""
    limits = UploadLimits.from_environment()
    st.caption(
        "csv, tsv, txt, npy or npz; nothing in a file is run, pickles are refused. "
        f"{limits.sentence()} They stay in this server's memory while your session lasts."
    )
    places = st.columns(2)
    kinds = list(ENDINGS)
    vectors = places[0].file_uploader(
        "Vectors, one a row; labels may be a column", kinds, key="check vectors"
    )
    labels = places[1].file_uploader(
        "Labels, one a row (if in a file of their own)", kinds, key="check labels"
    )
    given = tuple((file.file_id, file.name) if file else None for file in (vectors, labels))
    if vectors is not None and st.session_state.get(FILES) != given:
        st.session_state[FILES] = given
        st.session_state.pop(COLUMN, None)
        read(vectors, labels, None, limits)
    upload: Upload | None = st.session_state.get(UPLOAD)
    if upload is not None and vectors is not None and upload.choices:
        column = st.selectbox(
            "Labels", [AUTOMATIC, *upload.choices, NONE], key=COLUMN, help="Which column holds the labels."
        )
        asked = {AUTOMATIC: None, NONE: ""}.get(column, column)
        if st.session_state.get("check asked") != (given, asked):
            st.session_state["check asked"] = (given, asked)
            if asked is not None or upload.label_column == "":
                read(vectors, labels, asked, limits)
                # a column that leaves no vectors: what was understood stays, and another can be chosen
                upload = st.session_state[UPLOAD] = st.session_state[UPLOAD] or upload
    if vectors is not None and (refusal := st.session_state.get(REFUSED)):
        st.error(refusal)
    elif upload is None:
        st.info("Drop a file of vectors to see what every loss makes of them.")
    return upload


def read(vectors: Any, labels: Any, column: str | None, limits: UploadLimits) -> None:
    """Understands the files; a refusal is kept to be said, and leaves nothing half read."""
    pair = (vectors.name, vectors.getbuffer())
    beside = (labels.name, labels.getbuffer()) if labels else None
    st.session_state[UPLOAD], st.session_state[REFUSED] = None, ""
    try:
        with st.spinner("Reading"):
            st.session_state[UPLOAD] = understand(pair, beside, column, limits)
    except UploadError as error:
        st.session_state[REFUSED] = explain(error)


def understood(upload: Upload) -> None:
    """What the files say, before anything is made of them."""
    count, size = upload.vectors.shape
    classes = len(upload.class_names)
    labels = f"{classes} {'class' if classes == 1 else 'classes'}" if upload.has_labels else "no labels"
    vectors, numbers = "vector" if count == 1 else "vectors", "number" if size == 1 else "numbers"
    st.markdown(f"**{plain(upload.name)}**: {count:,} {vectors} of {size} {numbers}, {labels}.")
    with st.expander("What was understood", expanded=bool(upload.choices) and not upload.has_labels):
        st.markdown("\n".join(f"- {plain(note)}" for note in upload.notes) or "- Everything was used.")
        head = {f"{at + 1}": upload.vectors[:5, at] for at in range(min(size, 8))}
        rows: dict[str, Any] = {"row": upload.kept[:5]}
        if upload.has_labels:
            rows["label"] = [upload.class_names[code] for code in upload.labels[:5]]
        st.dataframe(rows | head, hide_index=True)
        if size > 8:
            st.caption(f"The first 8 of {size} numbers of the first five vectors.")


def doors(upload: Upload) -> None:
    """On to Train, with a head on these vectors; and a way to have the files forgotten."""
    file.offer(upload.digest, upload.dataset)
    query = {"data": "file", "file.digest": upload.digest, "file.name": upload.name[:80]}
    if not upload.has_labels:
        query |= {"pairing": "views"}
    trained = len(upload.parts()[0])
    if trained < RunConfig.batch:
        query |= {"batch": str(max(trained, 2)), "per_class": "0"}
    with st.container(horizontal=True, vertical_alignment="center"):
        st.page_link(
            "pages/train.py",
            label="Train a head on these vectors",
            icon=":material/play_circle:",
            query_params=query,
            help="The link also works elsewhere, once the same file was dropped there.",
        )
        for page, label in (("compare", "Compare losses on them"), ("sweep", "Sweep over them")):
            named = {f"{page}.{key}": value for key, value in query.items()}
            st.page_link(f"pages/{page}.py", label=label, query_params=named)
        if upload is st.session_state.get(UPLOAD):
            st.button("Forget these files", on_click=forget, type="tertiary")


def forget() -> None:
    """Nothing of the upload is kept in the session."""
    for key in (UPLOAD, COLUMN, "check asked"):
        st.session_state.pop(key, None)
