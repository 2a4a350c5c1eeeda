"""`irb-twin tune`: gains of a law found by search, compared with its default ones."""
