"""A virtual controller of ABB: tasks, signals, events, motion, EGM, in real time."""
