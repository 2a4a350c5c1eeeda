"""From files to robots: URDFs, DH tables, shapes, and what is suspicious in them."""
