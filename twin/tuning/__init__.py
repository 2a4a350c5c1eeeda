"""Gains found by search: those that hold for all draws of a sweep, and among them the best."""
