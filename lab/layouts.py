"""Maps of one moment that take too long to draw while it trains: t-SNE and UMAP.

No torch here: the process that computes them (`lab.layout_worker`) loads numpy and one library.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from losslib.errors import ParameterError
from losslib.params import Integer, Interval, Param

MAX_POINTS = 1_000
MIN_POINTS = 5
SAMPLE_SIZES = (250, 500, MAX_POINTS)
ITERATIONS = 750
FIRST_SPREAD = 1e-4  # of the first coordinate where t-SNE starts; small, so that exaggeration can arrange it

Points = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Method:
    """A way to lay points out on a plane.

    `module` is what has to be importable, `package` what is to be installed for it.
    """

    name: str
    title: str
    summary: str
    options: dict[str, Param]
    module: str
    package: str


METHODS = {
    method.name: method
    for method in (
        Method(
            "tsne",
            "t-SNE",
            "Keeps near neighbours near. Sizes of clusters and distances between them mean nothing.",
            {
                "perplexity": Param(
                    30.0,
                    Interval(1.0, 300.0),
                    explore=(5.0, 100.0),
                    symbol=r"\mathrm{perp}",
                    meaning="about how many neighbours each point is held to",
                    larger="weighs the wider surroundings more",
                    step=5.0,
                    name="perplexity",
                ),
            },
            "sklearn.manifold",
            "scikit-learn",
        ),
        Method(
            "umap",
            "UMAP",
            "Keeps the graph of nearest neighbours. Distances between far clusters mean little.",
            {
                "n_neighbors": Param(
                    15,
                    Integer(2, 200),
                    explore=(2, 100),
                    symbol="k",
                    title="Neighbours",
                    meaning="how many nearest neighbours of each point make the graph",
                    larger="weighs the wider surroundings more",
                    name="n_neighbors",
                ),
                "min_dist": Param(
                    0.1,
                    Interval(0.0, 1.0),
                    explore=(0.0, 0.99),
                    symbol=r"d_{\min}",
                    title="Least distance",
                    meaning="how close points may lie on the map",
                    larger="loosens clusters",
                    step=0.01,
                    name="min_dist",
                ),
            },
            "umap",
            "umap-learn",
        ),
    )
}


def missing(name: str) -> str:
    """What has to be installed for the method, as a sentence; "" when nothing is missing."""
    method = METHODS[name]
    if importlib.util.find_spec(method.module.partition(".")[0]) is not None:
        return ""
    return (
        f"{method.title} needs the package {method.package}, which this server does not have. "
        f"Install it with: pip install {method.package}"
    )


def sample(count: int, most: int = MAX_POINTS) -> NDArray[np.int64]:
    """At most `most` of `count` rows, ascending; the same ones every time, smaller samples inside larger."""
    return np.sort(np.random.default_rng(0).permutation(count)[:most])


def refusal(name: str, embeddings: Points) -> str:
    """Why these embeddings cannot be laid out, as a sentence; "" when they can."""
    title = METHODS[name].title
    if len(embeddings) < MIN_POINTS:
        return f"{title} needs at least {MIN_POINTS} points, there are {len(embeddings)}."
    if not np.isfinite(embeddings).all():
        return f"{title} needs finite embeddings; some coordinates here are not."
    different = len(np.unique(embeddings, axis=0))
    if different < MIN_POINTS:
        many = "All embeddings are equal" if different == 1 else f"Only {different} embeddings differ"
        return f"{many}: there are no neighbourhoods for {title} to lay out. The collapse is the picture."
    return ""


def checked_options(name: str, options: Mapping[str, Any], count: int) -> dict[str, Any]:
    """The options with defaults filled in, and held to what `count` points allow."""
    method = METHODS[name]
    unknown = options.keys() - method.options.keys()
    if unknown:
        raise ParameterError(
            f"{method.title} has no option {min(unknown)!r}; it has {', '.join(method.options)}"
        )
    found = {key: p.check(options.get(key, p.default), method.title) for key, p in method.options.items()}
    if "perplexity" in found:
        found["perplexity"] = min(found["perplexity"], max(1.0, (count - 1) / 3))
    if "n_neighbors" in found:
        found["n_neighbors"] = min(found["n_neighbors"], count - 1)
    return found


def compute(
    name: str, embeddings: Points, options: Mapping[str, Any], start: Points | None = None, seed: int = 0
) -> NDArray[np.float32]:
    """The layout, (N, 2), finite. Prints its progress as the libraries do.

    Args:
        name: a key of `METHODS`.
        embeddings: (N, D).
        options: of the method.
        start: (N, 2) to start from, such as the layout of the step before, and to be turned towards; None
            starts t-SNE from the principal components and UMAP from its own spectral layout.
        seed: of everything random.

    Raises:
        ParameterError: the embeddings cannot be laid out, or an option is out of range.
    """
    said = refusal(name, embeddings) or missing(name)
    if said:
        raise ParameterError(said)
    settings = checked_options(name, options, len(embeddings))
    points = np.ascontiguousarray(embeddings, dtype=np.float32)
    begin = usable(start, len(points))
    found = (_tsne if name == "tsne" else _umap)(points, settings, begin, seed)
    if not np.isfinite(found).all():
        raise ParameterError(f"{METHODS[name].title} found no finite layout for these embeddings.")
    return aligned(found, begin).astype(np.float32)


def usable(start: Points | None, count: int) -> NDArray[np.float32] | None:
    """The positions to start from if they are (count, 2), finite and not all equal."""
    if start is None or start.shape != (count, 2) or not np.isfinite(start).all() or not np.ptp(start):
        return None
    return start.astype(np.float32)


def _tsne(points: Points, settings: dict[str, Any], start: Points | None, seed: int) -> Points:
    from sklearn.manifold import TSNE

    # an array, never init="pca": scikit-learn's own PCA start ends the process on constant data
    init = principal_start(points, seed) if start is None else start
    made = TSNE(**settings, init=init, random_state=seed, max_iter=ITERATIONS, n_jobs=1, verbose=2)
    found: Points = made.fit_transform(points)
    return found


def _umap(points: Points, settings: dict[str, Any], start: Points | None, seed: int) -> Points:
    made = importlib.import_module("umap").UMAP(
        **settings,
        init="spectral" if start is None else start,
        random_state=seed,
        n_jobs=1,
        verbose=True,
        tqdm_kwds={"disable": True},
    )
    found: Points = made.fit_transform(points)
    return found


def principal_start(points: Points, seed: int = 0) -> NDArray[np.float32]:
    """The two principal components, the first with a standard deviation of 1e-4, and a little noise.

    The noise lets points that coincide, or lie on a line, part.
    """
    wide = points.astype(np.float64)
    centred = wide - wide.mean(axis=0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    scores = np.zeros((len(points), 2))
    axes = directions[:, ::-1][:, :2]
    scores[:, : axes.shape[1]] = centred @ axes
    spread = scores[:, 0].std()
    noise = np.random.default_rng(seed).normal(scale=0.01 * FIRST_SPREAD, size=scores.shape)
    start: NDArray[np.float32] = (scores * (FIRST_SPREAD / spread if spread else 0.0) + noise).astype(
        np.float32
    )
    return start


def aligned(positions: Points, target: Points | None) -> Points:
    """The positions moved, turned or mirrored to lie as near the target as they can (orthogonal Procrustes).

    No distance between positions changes (Schönemann 1966). (N, M) both; without a target as they are.
    """
    if target is None:
        return positions
    wide, aim = positions.astype(np.float64), np.asarray(target, dtype=np.float64)
    centred, middle = wide - wide.mean(axis=0), aim.mean(axis=0)
    left, _, right = np.linalg.svd(centred.T @ (aim - middle))
    return centred @ (left @ right) + middle
