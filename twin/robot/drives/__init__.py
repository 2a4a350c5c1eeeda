"""Between the torque that a controller demands and the joint: motors, gears, friction, springs; sensors."""
