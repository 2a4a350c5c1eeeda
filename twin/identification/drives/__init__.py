"""What one drive is: the spring of its gear from an excited motor, its friction from constant speeds."""
