"""What the messages hold, and how it is written in bytes."""
