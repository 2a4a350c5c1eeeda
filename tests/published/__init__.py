"""Every number and equation that the sources print, computed by the library now; `items.py` says how."""
