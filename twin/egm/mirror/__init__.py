"""A twin that follows the messages of a robot that somebody else guides."""
