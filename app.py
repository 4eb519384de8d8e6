"""The server: `python -m streamlit run app.py`. Pages are home.py and the files of pages/."""

import streamlit as st

from ui.errors import show_error
from ui.health import health_routes
from ui.live.route import live_routes
from ui.playground.route import play_routes
from ui.server import lifespan

app = st.App(
    "home.py",
    routes=[*live_routes(), *play_routes(), *health_routes()],
    lifespan=lifespan,
    on_script_error=show_error,
)
