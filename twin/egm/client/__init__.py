"""Who answers a robot, and guides it."""
