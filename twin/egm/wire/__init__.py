"""EGM messages: content, encoding, order and transport."""
