"""The server: `python -m streamlit run app.py`. Pages are home.py and the files of pages/."""

import streamlit as st
from starlette.middleware import Middleware

from ui.errors import show_error
from ui.health import health_routes
from ui.live.route import live_routes
from ui.playground.route import play_routes
from ui.server import lifespan
from ui.upload_guard import UploadGuard

app = st.App(
    "home.py",
    routes=[*live_routes(), *play_routes(), *health_routes()],
    middleware=[Middleware(UploadGuard)],
    lifespan=lifespan,
    on_script_error=show_error,
)
