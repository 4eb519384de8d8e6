"""A fair comparison of losses or settings: same data, initial weights and batches, taking turns."""
