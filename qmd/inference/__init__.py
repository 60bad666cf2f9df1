"""Models: what search needs of them (`protocols`), and the ones there are."""
