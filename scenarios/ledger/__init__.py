"""The ledger of published numbers and equations: every one that the sources print, computed by the library.

`*.toml` state the items, by source and topic; the modules compute them, and call the library wherever it has
the quantity.  `irb-twin published` shows the result.
"""
