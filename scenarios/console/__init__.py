"""What the commands print, the files that they write, and the progress that they show."""
