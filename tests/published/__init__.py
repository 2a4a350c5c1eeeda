"""Numbers and equations of the published sources, computed by the library; see `items.py`."""
