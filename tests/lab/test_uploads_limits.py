"""How much of a file is read: limits that are said, samples, and labels of too many classes."""

import numpy as np
import pytest

from lab.uploads import UploadError, UploadLimits, understand
from tests.lab.test_uploads import LABELS, VECTORS, csv, names, npy


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (UploadLimits(rows=5), "rows"),
        (UploadLimits(columns=1), "3 columns; at most 1"),
    ],
)
def test_limits_are_said(limits: UploadLimits, said: str) -> None:
    with pytest.raises(UploadError, match=said):
        understand(("v.csv", csv("d0,d1,kind", column=LABELS)), limits=limits)


def test_labels_of_too_many_classes_are_left_out_and_another_column_can_be_chosen() -> None:
    file = ("v.csv", csv("d0,d1,kind", column=LABELS))
    upload = understand(file, limits=UploadLimits(classes=2))
    assert not upload.has_labels
    assert upload.choices == ("kind",)
    assert upload.vectors.tolist() == VECTORS.tolist()
    assert any("'kind' have 3 different values; at most 2 classes" in note for note in upload.notes)


def test_a_file_of_labels_is_counted_before_its_labels_become_texts() -> None:
    labels = npy(np.zeros(9, dtype=np.int8))
    with pytest.raises(UploadError, match=r"l.npy has 9 rows; at most 8 are read"):
        understand(("v.npy", npy(VECTORS)), ("l.npy", labels), limits=UploadLimits(rows=8))


@pytest.mark.parametrize("form", ["npy", "csv"])
def test_a_large_file_is_sampled_with_its_labels(form: str) -> None:
    count = 3000
    vectors = np.stack([np.arange(count) * 0.5, np.arange(count) % 7], axis=1)
    text = "\n".join(f"{a},{b}" for a, b in vectors.tolist()).encode()
    labels = "\n".join(str(at % 7) for at in range(count)).encode()
    file = ("v.npy", npy(vectors)) if form == "npy" else ("v.csv", text)
    upload = understand(file, ("l.csv", labels), limits=UploadLimits(kept=200))
    assert len(upload.vectors) == len(set(upload.kept.tolist())) == 200
    assert np.array_equal(upload.vectors[:, 0], upload.kept * 0.5)
    assert names(upload) == [str(at % 7) for at in upload.kept]
    # a random sample of 0..2999 has mean 1500 with a standard error of 61
    assert abs(upload.kept.mean() - 1499.5) < 5 * 61
    assert any("3,000 rows, of which a random sample of 200" in note for note in upload.notes)


def test_the_limits_are_settings_of_the_server() -> None:
    limits = UploadLimits.from_environment({"LOSSLAB_UPLOAD_KEPT": "50", "OTHER": "1"})
    assert limits.kept == 50
    assert "50 rows" in limits.sentence()
    with pytest.raises(ValueError, match="LOSSLAB_UPLOAD_ROWS"):
        UploadLimits.from_environment({"LOSSLAB_UPLOAD_ROWS": "many"})
