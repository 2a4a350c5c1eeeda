"""Rotations and what stands for them: matrices, quaternions, Euler angles, linear maps; no robot."""
