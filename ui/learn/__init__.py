"""The Learn page: lessons, the failure gallery, moments that a teacher links to, and rooms."""
