"""Views of logs: comparison tables, curves, films and their playback."""
