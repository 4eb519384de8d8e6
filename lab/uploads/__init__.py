"""Vectors and labels that people bring: read without running anything in them, and told back in words.

`understand(files)` is the way in. A file is bytes and a name; csv, tsv, txt, npy and npz are read. No pickle
is loaded and no header is evaluated: what a header promises is compared with the bytes that are there first.
"""

from lab.uploads.limits import UploadLimits
from lab.uploads.read import Table, read_file
from lab.uploads.understood import Upload, UploadError, understand

__all__ = ["Table", "Upload", "UploadError", "UploadLimits", "read_file", "understand"]
