"""Scenarios and their checks; the command line; reports."""
