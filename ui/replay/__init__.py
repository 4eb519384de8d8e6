"""Recorded runs side by side under one slider, drawn in the browser: a move of it asks no server."""
