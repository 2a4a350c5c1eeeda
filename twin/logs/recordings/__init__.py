"""Recordings of motions: tables of numbers in a file, their columns and units, and what is checked."""
