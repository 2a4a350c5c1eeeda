"""`irb-twin egm`: a robot on the wire, a twin beside one, records of streams, and their replay."""
