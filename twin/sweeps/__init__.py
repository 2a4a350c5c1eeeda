"""Sweeps: sampling designs, parallel runs of an experiment with varied quantities, and statistics."""
