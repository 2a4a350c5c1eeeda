"""Guidance: joint speeds that follow the received references within the limits of the robot."""
