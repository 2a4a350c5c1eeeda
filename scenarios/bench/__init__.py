"""Interaction at PyBullet's window: jog, teach, change controllers and gains, compare, replay."""
