"""What runs have to say: tables for the terminal, files for programs, a picture."""
