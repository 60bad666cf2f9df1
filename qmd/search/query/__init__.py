"""The query language: a string → what is to be found."""
