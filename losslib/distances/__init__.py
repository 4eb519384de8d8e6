"""Distances and similarities between embeddings."""

from losslib.distances.base import Distance
from losslib.distances.lp import LpDistance
from losslib.distances.similarity import CosineSimilarity, DotProductSimilarity
from losslib.distances.snr import SNRDistance

__all__ = ["CosineSimilarity", "Distance", "DotProductSimilarity", "LpDistance", "SNRDistance"]
