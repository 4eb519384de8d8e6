"""Embeddings that somebody brings, looked at: losses, quality, hard pairs, distances."""
