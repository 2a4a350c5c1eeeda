"""Items of the laboratory manual of the University of Ljubljana."""
