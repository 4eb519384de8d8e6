"""The live panel: a canvas component fed over a WebSocket route of the same server."""
