"""The imports run one way, and the library stands alone."""

import ast
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OURS = {"losslib", "datasets", "lab", "ui", "pages", "home", "app"}
ALLOWED = {
    "losslib": {"losslib"},
    "datasets": {"datasets", "losslib"},
    "lab": {"lab", "datasets", "losslib"},
    "ui": {"ui", "lab", "datasets", "losslib"},
    "pages": {"ui", "lab", "datasets", "losslib"},
    "home.py": {"ui", "lab", "datasets", "losslib"},
    "app.py": {"ui", "lab", "datasets", "losslib"},
}
FORBIDDEN_PACKAGES = {
    "losslib": {"numpy", "streamlit", "plotly", "sklearn", "pandas", "scipy", "starlette"},
    "datasets": {"streamlit", "starlette", "torch"},
    "lab": {"streamlit", "starlette"},
    "pages": {"starlette", "torch"},
}


def imported_modules(path: Path) -> set[str]:
    """Dotted names that a file imports anywhere, inside functions too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module)
    return names


def files_of(layer: str) -> list[Path]:
    place = ROOT / layer
    return [place] if place.is_file() else sorted(place.rglob("*.py"))


@pytest.mark.parametrize("layer", list(ALLOWED))
def test_a_layer_imports_only_the_layers_below_it(layer: str) -> None:
    files = files_of(layer)
    assert files, f"{layer} has no files"
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in files
        for name in sorted(imported_modules(path))
        if (name.split(".")[0] in OURS and name.split(".")[0] not in ALLOWED[layer])
        or name.split(".")[0] in FORBIDDEN_PACKAGES.get(layer, set())
    ]
    assert wrong == []


def test_datasets_take_nothing_from_losslib_but_its_parameters() -> None:
    wrong = [
        f"{path.name} imports {name}"
        for path in files_of("datasets")
        for name in imported_modules(path)
        if name.split(".")[0] == "losslib" and name not in {"losslib.params", "losslib.errors"}
    ]
    assert wrong == []


def loaded_by(statement: str) -> set[str]:
    code = f"{statement}\nimport sys\nprint(' '.join(sorted({{name.split('.')[0] for name in sys.modules}})))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=120
    )
    return set(done.stdout.split())


def test_losslib_loads_torch_and_no_package_of_the_app() -> None:
    loaded = loaded_by("import losslib.losses, losslib.distances, losslib.reducers, losslib.catalog")
    assert "torch" in loaded
    assert loaded & {"streamlit", "plotly", "sklearn", "pandas", "datasets", "lab", "ui"} == set()


def test_declaring_parameters_needs_no_torch() -> None:
    assert "torch" not in loaded_by("import losslib.params")


def test_listing_data_sets_loads_neither_torch_nor_scikit_learn() -> None:
    assert loaded_by("import datasets; datasets.catalog()") & {"torch", "sklearn", "streamlit"} == set()


def test_the_engine_loads_no_streamlit() -> None:
    assert loaded_by("import lab.run, lab.scheduler") & {"streamlit", "ui"} == set()


def required_by(names: set[str]) -> set[str]:
    """Names of all distributions that the given ones need, themselves included."""
    found: set[str] = set()
    waiting = set(names)
    while waiting:
        name = waiting.pop()
        found.add(name)
        try:
            needs = requires(name) or []
        except PackageNotFoundError:
            continue
        for line in needs:
            needed = re.split(r"[^A-Za-z0-9_.-]", line, maxsplit=1)[0].lower().replace("_", "-")
            if "extra ==" not in line and needed not in found:
                waiting.add(needed)
    return found


def test_our_folder_named_datasets_hides_no_package_that_a_dependency_needs() -> None:
    """In this process `import datasets` gives our folder, so nothing we depend on may need that package."""
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    closure = required_by({line.split("==")[0].strip() for line in lines if line.strip()})
    assert "tornado" in closure or "starlette" in closure, "the walk did not get past the first level"
    assert "datasets" not in closure


def test_everything_logs_under_one_name() -> None:
    names = {
        (path.relative_to(ROOT).as_posix(), name)
        for layer in ALLOWED
        for path in files_of(layer)
        for name in re.findall(r"getLogger\((.*?)\)", path.read_text(encoding="utf-8"))
    }
    assert names, "nothing logs"
    assert {name for _, name in names} == {'"losslab"'}, names
