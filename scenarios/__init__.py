"""What is run and what must hold; the command line; reports."""
