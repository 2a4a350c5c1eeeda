"""Items of Norrlöf 1999 and of his lecture."""
