"""Recordings of motions: tables of numbers in files, their columns and units, and their validation."""
