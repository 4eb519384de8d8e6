"""Properties that hold for any input: losses, miners, reducers, uploads and links, by hypothesis.

    python -m tests.fuzz --inputs 1000000 --jobs 2

A property is a function of this package's files with the decorator `holds`; the test run tries a few inputs
of each, the command as many as are asked for.
"""
