"""Which pairs stand in which bin of a frame's histograms: from a bin to points of the map, and back."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray

from lab.probe import Probe
from lab.trainer import build_loss

if TYPE_CHECKING:
    from datasets import Dataset
    from lab.frame import Frame
    from lab.recording import Recording


class PairBins(NamedTuple):
    """The pairs that a frame's histograms count.

    Attributes:
        step: of the frame.
        positives: how many of the pairs are positive; they come first.
        pairs: places of the two points on the map, (M, 2).
        bins: the bin that each pair stands in, (M,).
    """

    step: int
    positives: int
    pairs: NDArray[np.uint16]
    bins: NDArray[np.uint8]


_PROBES: WeakKeyDictionary[Recording, Probe] = WeakKeyDictionary()
_LOCK = threading.Lock()


def pair_bins(recording: Recording, data: Dataset, frame: Frame) -> PairBins:
    """The pairs of a frame and their bins, from the embeddings it kept (half precision).

    Without kept embeddings, or where the histograms compare two views of samples rather than points of the
    map, there are no pairs.
    """
    probe = _probe_of(recording, data)
    if frame.embeddings is None or probe.view_inputs is not None:
        return PairBins(frame.step, 0, np.zeros((0, 2), np.uint16), np.zeros(0, np.uint8))
    config, histogram = recording.config, frame.histogram
    distance: Any = build_loss(
        config, torch.from_numpy(data.labels[data.train]), len(data.class_names)
    ).distance
    points = torch.from_numpy(frame.embeddings).float()
    with torch.no_grad():
        values = torch.cat([distance.pairwise(points[one], points[other]) for one, other in probe.pairs])
    count, span = len(histogram.positive), histogram.high - histogram.low
    bins = ((values - histogram.low) / span * count).floor().clamp(0, count - 1)
    pairs = np.concatenate([np.stack([one, other], axis=1) for one, other in probe.pairs])
    return PairBins(frame.step, len(probe.pairs[0][0]), pairs.astype(np.uint16), bins.to(torch.uint8).numpy())


def _probe_of(recording: Recording, data: Dataset) -> Probe:
    """The probe of the run that was recorded: the same seed draws the same pairs."""
    with _LOCK:
        if recording not in _PROBES:
            config = recording.config
            _PROBES[recording] = Probe(
                data, config.encoder != "free", config.seed, config.dim, config.pairing, config.delta
            )
        return _PROBES[recording]
