"""Files that people bring: what is understood, what is refused, and that nothing in them runs."""

import io
import pickle
import zipfile
from typing import Any

import numpy as np
import pytest

from lab.uploads import Upload, UploadError, UploadLimits, understand

VECTORS = np.array([[0.5, -1.25], [0.25, 3.0], [-2.0, 0.125], [1.5, 1.0], [0.0, 2.5], [4.0, -0.5]])
PLAIN = b"0.5,-1.25\n0.25,3\n-2,0.125\n1.5,1\n0,2.5\n4,-0.5\n"
LABELS = ["ant", "ant", "bee", "bee", "cow", "cow"]


def npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def names(upload: Upload) -> list[str]:
    return [upload.class_names[code] for code in upload.labels]


def csv(header: str = "", delimiter: str = ",", end: str = "\n", column: list[str] | None = None) -> bytes:
    rows = [delimiter.join(map(str, row)) for row in VECTORS.tolist()]
    if column:
        rows = [row + delimiter + cell for row, cell in zip(rows, column, strict=True)]
    return (end.join(([header] if header else []) + rows) + end).encode()


@pytest.mark.parametrize(
    "content",
    [
        csv(),
        csv("d0,d1"),
        csv("0,1"),
        csv(delimiter="\t"),
        csv(delimiter=";"),
        csv(delimiter="  "),
        csv(end="\r\n"),
        csv().replace(b"\n", b",\n"),
        csv() + b"\n\n\n",
        csv().replace(b"-2.0", b"\n\n-2.0"),
        b"\xef\xbb\xbf" + csv("d0,d1"),
        csv("d0,d1").decode().encode("utf-16"),
        csv("d0,d1").decode().encode("utf-16-be"),
        csv(delimiter=";").replace(b".", b","),
        npy(VECTORS),
        npy(VECTORS.astype(">f8", order="F")),
        npy(VECTORS.astype(np.float16)),
        npz(embeddings=VECTORS),
    ],
)
@pytest.mark.parametrize("name", ["v.csv", "v.tsv", "v.txt"])
def test_the_same_vectors_whatever_the_form(content: bytes, name: str) -> None:
    upload = understand((name, content))
    assert upload.vectors.dtype == np.float32
    assert np.array_equal(upload.vectors, VECTORS.astype(np.float32))
    assert not upload.has_labels
    assert upload.rows == 6


@pytest.mark.parametrize(
    "labels",
    [
        b"ant\nant\nbee\nbee\ncow\ncow\n",
        b"kind\nant\nant\nbee\nbee\ncow\ncow\n",
        b"animal\nant\nant\nbee\nbee\ncow\ncow\n",  # a name only because there is one line too many
        b"kind\tid\nant\t1\nant\t2\nbee\t3\nbee\t4\ncow\t5\ncow\t6\n",
        b"ant\r\nant\r\nbee\r\nbee\r\ncow\r\ncow",
        npy(np.array(LABELS)),
        npy(np.array(LABELS)[:, np.newaxis]),
        npz(labels=np.array(LABELS)),
    ],
)
def test_a_file_of_labels(labels: bytes) -> None:
    upload = understand(("v.csv", csv("d0,d1")), ("l.tsv", labels))
    assert names(upload) == LABELS


@pytest.mark.parametrize("count", [5, 7])
def test_mismatched_counts_are_both_named(count: int) -> None:
    labels = "\n".join("0011222"[:count]).encode()
    with pytest.raises(UploadError, match=rf"{count} labels and v.csv has 6 vectors"):
        understand(("v.csv", csv()), ("l.csv", labels))


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (b"0\n0\n\n1\n2\n2\n", ["0", "0", "missing label", "1", "2", "2"]),
        (b"0\n0\n1\n1\n2\n2\n\n\n", ["0", "0", "1", "1", "2", "2"]),
        (b'label\n1\n2\n""\n1\n2\n1\n', ["1", "2", "missing label", "1", "2", "1"]),
        (b"label\n" + b'""\n' * 6, ["missing label"] * 6),
        (b"label\n007\n07\n7\n007\n07\n7\n", ["007", "07", "7"] * 2),
        (b"label\nnan\nNA\nnull\nnan\nNA\nnull\n", ["nan", "NA", "null"] * 2),
        (npy(np.array([10, 9, 9, 10, 2, 2])), ["10", "9", "9", "10", "2", "2"]),
    ],
)
def test_labels_stay_what_they_are(labels: bytes, expected: list[str]) -> None:
    upload = understand(("v.csv", csv()), ("l.csv", labels))
    assert names(upload) == expected


def test_classes_are_in_the_order_of_numbers() -> None:
    upload = understand(("v.csv", csv()), ("l.csv", b"10\n9\n9\n10\n2\n2\n"))
    assert upload.class_names == ("2", "9", "10")


def test_signs_alone_and_infinity_are_names_of_classes() -> None:
    upload = understand(("v.csv", csv("d0,d1,kind", column=["--5", "--5", "+-5", "12", "-3", "-3"])))
    assert upload.class_names == ("-3", "12", "+-5", "--5")
    labels = npy(np.array([1.0, 1.0, np.inf, np.inf, np.nan, -0.0]))
    upload = understand(("v.npy", npy(VECTORS)), ("l.npy", labels))
    assert names(upload) == ["1", "1", "inf", "inf", "missing label", "0"]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.array([0.0, 0, 1, 1, np.nan, 2]), ["0", "0", "1", "1", "missing label", "2"]),
        (np.array([[0], [0], [1], [1], [2], [2]]), ["0", "0", "1", "1", "2", "2"]),
        (np.array([0.5, 0.25, 1, 1, 2, 2]), ["no label"] * 6),  # a quantity, not classes
    ],
)
def test_an_array_named_labels_in_an_archive(array: Any, expected: list[str]) -> None:
    upload = understand(("v.npz", npz(labels=array, embeddings=VECTORS)))
    assert names(upload) == expected
    assert upload.vectors.tolist() == VECTORS.tolist()


def test_a_column_of_labels_among_the_vectors() -> None:
    for header in ("d0,d1,label", ""):
        upload = understand(("v.csv", csv(header, column=LABELS)))
        assert upload.vectors.shape == (6, 2)
        assert names(upload) == LABELS


def test_a_column_of_numbers_named_label() -> None:
    upload = understand(("v.csv", csv("d0,d1,label", column=["007", "7", "007", "7", "7", "7"])))
    assert upload.vectors.shape == (6, 2)
    assert upload.class_names == ("007", "7")


@pytest.mark.parametrize(
    ("content", "vectors", "label"),
    [
        (b"x,y,label\n0.5,1.5,a\n2.5,3.5,b\n4.5,5.5,a\n", [[0.5, 1.5], [2.5, 3.5], [4.5, 5.5]], "label"),
        (b"x,y,group\n5,1,a\n2,1,b\n3,2,a\n", [[5, 1], [2, 1], [3, 2]], "group"),
        (b"x,y\n0.5,1.5\n2.5,3.5\n4.5,5.5\n", [[0.5, 1.5], [2.5, 3.5], [4.5, 5.5]], ""),
        (b"x,y\n0.5,0\n2.5,1\n4.5,0\n3.5,1\n", [[0.5], [2.5], [4.5], [3.5]], "y"),
    ],
    ids=["labelled", "whole", "plain", "y is the class"],
)
def test_y_beside_x_is_a_coordinate_unless_it_holds_classes(
    content: bytes, vectors: list[list[float]], label: str
) -> None:
    taken = understand(("points.csv", content))
    assert taken.vectors.tolist() == vectors
    assert taken.label_column == label


def test_vectors_that_are_one_point_are_kept_as_a_collapse() -> None:
    taken = understand(("points.csv", b"u,v,label\n1,2,a\n1,2,b\n1,2,a\n"))
    assert taken.vectors.tolist() == [[1, 2]] * 3
    assert not any("left out" in note for note in taken.notes)


def test_a_text_column_can_be_refused_as_labels() -> None:
    upload = understand(("v.csv", csv("d0,d1,kind", column=LABELS)), label_column="")
    assert not upload.has_labels
    assert upload.choices == ("kind",)
    with pytest.raises(UploadError, match=r"no column 'species'.*'kind'"):
        understand(("v.csv", csv("d0,d1,kind", column=LABELS)), label_column="species")


def test_quoted_commas() -> None:
    upload = understand(("v.csv", b'd0,d1,label\n0.1,0.2,"cat, large"\n0.3,0.4,dog\n'))
    assert names(upload) == ["cat, large", "dog"]


def test_an_index_column_and_file_names_are_no_part_of_a_vector() -> None:
    numbered = "".join(f"{at},{row[0]},{row[1]}\n" for at, row in enumerate(VECTORS.tolist()))
    for text in (",d0,d1\n" + numbered, numbered, "d0,d1\n" + numbered):
        upload = understand(("v.csv", text.encode()))
        assert np.array_equal(upload.vectors, VECTORS.astype(np.float32)), text
        assert any("counts the rows" in note for note in upload.notes)
    named = "".join(f"img_{at}.png,{row[0]},{row[1]}\n" for at, row in enumerate(VECTORS.tolist()))
    upload = understand(("v.csv", named.encode()))
    assert upload.vectors.shape == (6, 2)
    assert any("taken as names" in note for note in upload.notes)


def test_named_columns_that_are_the_same_everywhere_are_left_out_and_named() -> None:
    rows = [f"0,{row[0]},{row[1]},{label},1" for row, label in zip(VECTORS.tolist(), LABELS, strict=True)]
    upload = understand(("v.csv", ("masked,d0,d1,labels,done\n" + "\n".join(rows)).encode()))
    assert np.array_equal(upload.vectors, VECTORS.astype(np.float32))
    assert names(upload) == LABELS
    assert "The same in every row, so left out: masked, done." in upload.notes
    # nothing names the columns of an array: its constants are part of the vectors
    constant = np.column_stack([VECTORS, np.zeros(6)])
    assert understand(("v.npz", npz(embeddings=constant, labels=np.array(LABELS)))).vectors.shape == (6, 3)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"0.1,0.2\n0.3,0.4\n0.1,abc\n", r"row 2 \(line 3 of the file\), column 2.*'abc' is not a number"),
        (b"d0,d1\n0.1,0.2\n0.3,0.4\n0.1,abc\n", r"row 2 \(line 4 of the file\), column 2 \(d1\)"),
        (b"1,2,3\n4,5\n6,7,8,9\n", r"row 1 \(line 2 of the file\): 2 cells where 3 were expected"),
        (b"1_0,2\n3,4\n", "'1_0' is not a number"),
        (b"", "is empty"),
        (b"\n\n", "has no rows"),
        (b"a,b,c\n", "no columns of numbers"),
        (b"nan,1\ninf,2\n", "none is left"),
        (b'd0,label\n1,"open\n2,b\n', "quote that opens must close"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "not a text file"),
        (pickle.dumps(VECTORS), "pickle.*never read"),
        (npy(np.zeros((2, 3, 4))), r"shape \(2, 3, 4\)"),
        (npy(np.zeros((0, 4))), "no rows of numbers"),
        (npy(np.array(["a", "b"])), "holds text"),
        (npy(np.array([{}, 1], dtype=object)), "Python objects"),
        (npy(np.zeros((3, 2), dtype=complex)), "real numbers or text .complex numbers"),
        (npy(np.zeros(3, dtype=[("x", "f4")])), "Python objects and fields"),
        (npy(VECTORS)[:-8], "promises 96 bytes.*the file has 88"),
        (npy(VECTORS).replace(b"(6, 2)", b"(1000000000, 2)"), "promises 16,000,000,000 bytes"),
        (b"\x93NUMPY\x01\x00\x28\x23" + b"(" * 9000, "plain array"),
        (b"\x93NUMPY\x01\x00", "no npy header"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\x7f" + b" " * 100, "header of 2,147,483,647 bytes"),
        (npz(labels=np.array(LABELS)), "no array of numbers of shape"),
        (b"PK\x03\x04nonsense", "no npz file"),
        (npz(**{f"a{at}": np.zeros(1) for at in range(65)}), "65 entries; at most 64"),
    ],
)
def test_what_is_refused_and_why(content: bytes, said: str) -> None:
    with pytest.raises(UploadError, match=said):
        understand(("v.csv", content))


def test_rows_that_are_not_finite_are_counted_and_left_out() -> None:
    broken = VECTORS.copy()
    broken[3, 1], broken[5, 0] = np.nan, np.inf
    upload = understand(("v.npy", npy(broken)), ("l.csv", "\n".join(LABELS).encode()))
    assert upload.kept.tolist() == [0, 1, 2, 4]
    assert names(upload) == ["ant", "ant", "bee", "cow"]
    assert any(note.startswith("2 rows hold NaN") and "rows 3 and 5" in note for note in upload.notes)
    upload = understand(("v.npy", npy(np.array([[1e300, 1.0], [1.0, 2.0]]))))
    assert upload.kept.tolist() == [1]
    assert any(
        note.startswith("1 row holds NaN, infinity, a number beyond 3.4e38 or") for note in upload.notes
    )


def test_bombs_are_refused_before_they_are_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = npz(embeddings=np.zeros((3000, 1000), dtype=np.float32))
    assert len(bomb) < 20_000

    def opened(*_: object) -> None:
        raise AssertionError("an entry was unpacked")

    monkeypatch.setattr(zipfile.ZipFile, "open", opened)
    with pytest.raises(UploadError, match="unpacks to 11 MiB; at most 4 MiB"):
        understand(("v.npz", bomb), limits=UploadLimits(megabytes=4))


def test_an_entry_that_lies_about_its_size_gives_no_more_than_it_says() -> None:
    packed = bytearray(npz(embeddings=np.zeros((5000, 100), dtype=np.float32)))
    true_size = (5000 * 100 * 4 + 128).to_bytes(4, "little")
    assert packed.count(true_size) >= 1
    lying = bytes(packed.replace(true_size, (200).to_bytes(4, "little")))
    with pytest.raises(UploadError):
        understand(("v.npz", lying), limits=UploadLimits(megabytes=1))


def test_an_archive_whose_directory_lies_elsewhere_is_refused() -> None:
    packed = bytearray(npz(embeddings=VECTORS))
    end = packed.rindex(b"PK\x05\x06")
    packed[end + 12 : end + 16] = (len(packed) + 65536).to_bytes(4, "little")  # size of the directory
    with pytest.raises(UploadError, match="no npz file that can be read"):
        understand(("v.npz", bytes(packed)))


def test_nested_archives_are_not_opened() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("inner.zip", npz(embeddings=VECTORS))
    with pytest.raises(UploadError, match=r"'inner.zip', which is no array"):
        understand(("v.npz", file.getvalue()))


def test_the_digest_tells_contents_apart() -> None:
    one = understand(("v.csv", csv("d0,d1,kind", column=LABELS)))
    assert one.digest == understand(("w.csv", csv("d0,d1,kind", column=LABELS))).digest
    assert one.digest != understand(("v.csv", csv("d0,d1,kind", column=LABELS[::-1]))).digest
    assert one.digest != understand(("v.csv", csv("d0,d1,kind", column=LABELS)), label_column="").digest


def test_an_upload_is_a_data_set() -> None:
    upload = understand(("v.csv", csv() * 5), ("l.csv", "\n".join(LABELS * 5).encode()))
    data = upload.dataset(seed=3)
    assert data.inputs.shape == (30, 2)
    moved = np.tile(VECTORS, (5, 1)) - VECTORS.mean(axis=0)
    assert data.inputs == pytest.approx(moved / VECTORS.std(), rel=1e-5)
    assert len(data.train) == len(data.held_out) + 6 == 18
    assert sorted([*data.train, *data.held_out]) == list(range(30))
    assert np.bincount(data.labels[data.held_out]).tolist() == [4, 4, 4]


def test_numbers_of_any_size_train_alike() -> None:
    tiny = understand(("v.npy", npy(1e-30 * VECTORS))).dataset()
    assert tiny.inputs == pytest.approx(understand(("v.npy", npy(VECTORS))).dataset().inputs, rel=1e-5)
    still = understand(("v.npy", npy(np.ones((4, 2))))).dataset()
    assert not still.inputs.any()
