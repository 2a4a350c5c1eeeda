"""A robot that sends its state and is guided by the answers."""
