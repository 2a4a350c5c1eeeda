"""PyBullet as ground truth: the one room that imports it."""
