"""A class on one server, measured."""
