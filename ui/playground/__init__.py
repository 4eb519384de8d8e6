"""The playground: points dragged by hand, answered over a WebSocket route of the same server."""
