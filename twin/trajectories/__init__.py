"""Motions of joints and tools: time laws, paths, recordings, samples, and their limits."""
