"""Aliaga 2019, item by item."""
