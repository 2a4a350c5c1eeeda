"""Published cases beside the five sources, with the numbers that they need."""
