"""The laboratory manual of the University of Ljubljana, item by item."""
