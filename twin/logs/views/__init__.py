"""Ways to look at logs: side by side in a table, as curves, as a film."""
