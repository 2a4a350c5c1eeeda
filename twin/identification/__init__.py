"""From recorded motion to a model: parameters of links, drives and payload, with their deviations."""
