"""Identification of single drives: gear elasticity from an excited motor, friction from constant speeds."""
