"""Twin that follows the messages of a robot under the guidance of another client."""
