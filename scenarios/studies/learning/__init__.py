"""Iterative learning of scenarios: runs in the engine, their table and their picture."""
