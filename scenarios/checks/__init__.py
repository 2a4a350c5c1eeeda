"""What scenarios are made of, and what they are judged by: tracking, bounds, limits, rounding."""
