"""Simulated EGM robot, which sends its state and is guided by the answers."""
