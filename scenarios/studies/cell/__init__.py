"""`irb-twin cell` and `irb-twin reach`: distances of an arm to what stands around it."""
