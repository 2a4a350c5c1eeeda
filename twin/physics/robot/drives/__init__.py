"""Drives between the demanded torque and the joint: motors, gears, friction, springs; and sensors."""
