"""What a robot makes of the references that it gets: joint speeds, within its limits."""
