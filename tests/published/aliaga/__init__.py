"""Items of Aliaga 2019."""
