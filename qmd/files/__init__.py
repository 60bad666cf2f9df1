"""Files that tools read and write: notes, posts, photos, summaries, and what they held before."""
