"""Edits of a note's text: what is replaced, inserted or set, and the difference that it makes."""
