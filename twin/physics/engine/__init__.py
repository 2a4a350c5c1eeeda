"""PyBullet as ground truth; the only package that imports PyBullet."""
