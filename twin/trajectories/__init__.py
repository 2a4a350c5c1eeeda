"""Motions of joints and tools: time laws, paths, along recordings, samples, and their limits."""
