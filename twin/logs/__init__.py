"""What happened in a run: its record, the record's file, and what is made of it."""
