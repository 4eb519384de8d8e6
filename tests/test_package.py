"""The wheel: losslib alone, whole, with torch as its only dependency, and usable without this folder."""

import shutil
import subprocess
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NEIGHBOURS = ("datasets", "lab", "ui", "pages")  # beside it in the folder, and none of it


def pip(*arguments: str, cwd: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "pip",
        "--disable-pip-version-check",
        *arguments,
        "--no-index",
        "--no-deps",
    ]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, so that nothing is left in this folder."""
    place = tmp_path_factory.mktemp("wheel")
    source = place / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, source)
    for name in ("losslib", *NEIGHBOURS):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__", "*.npz"))
    pip("wheel", "--quiet", "--no-build-isolation", "--wheel-dir", str(place), str(source), cwd=place)
    [built] = place.glob("*.whl")
    return built


def test_it_holds_all_of_losslib_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "losslib").rglob("*.py")}
    assert len(modules) > 90
    assert {name for name in names if ".dist-info/" not in name} == modules | {"losslib/py.typed"}
    assert {name.partition("/")[0].partition("-")[0] for name in names} == {"losslib"}


def test_torch_is_its_only_dependency(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = Parser().parsestr(archive.read(name).decode())
    assert metadata.get_all("Requires-Dist") == ["torch>=2.6"]
    assert metadata["Name"] == "losslib"


def test_it_installs_and_computes_away_from_this_folder(wheel: Path, tmp_path: Path) -> None:
    target, elsewhere = tmp_path / "installed", tmp_path / "elsewhere"
    elsewhere.mkdir()
    pip("install", "--quiet", "--target", str(target), str(wheel), cwd=elsewhere)
    code = f"""
import sys
sys.path.insert(0, {str(target)!r})
import losslib
assert "torch" not in sys.modules, "importing losslib alone loads no torch"
import torch
from losslib import catalog, losses
loss = losses.ContrastiveLoss()(torch.eye(4), torch.tensor([0, 0, 1, 1]))
print(losslib.__file__, len(catalog.losses()), round(float(loss), 4))
assert not {{"lab", "ui", "datasets"}} & set(sys.modules)
"""
    # -I: neither this folder nor PYTHONPATH is on the path
    done = subprocess.run(
        [sys.executable, "-I", "-W", "error", "-c", code],
        cwd=elsewhere,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    file, count, value = done.stdout.split()
    assert Path(file).is_relative_to(target)
    assert int(count) >= 45
    assert float(value) == 1.4142  # positives at distance sqrt 2, negatives beyond their margin
