"""Poses, Jacobians, inverse kinematics, statics."""
