"""Gains of a law, found by search in a scenario whose numbers vary, and compared with its default ones."""
