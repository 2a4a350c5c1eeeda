"""Norrlöf 1999 and his lecture, item by item."""
