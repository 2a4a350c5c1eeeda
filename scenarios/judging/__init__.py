"""Parts that scenarios share: closed loops, tracking metrics, bounds, limits, rounding."""
