"""An archive of posts, a folder for each author: listed, read, and searched for literals."""
