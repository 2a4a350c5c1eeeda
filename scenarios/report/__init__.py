"""Reports of runs: tables for the terminal, files for programs, pictures and a page of HTML."""
