"""What a person can do at the window of a run: jog, teach, switch laws, turn gains, compare."""
