"""Reports the state of an installation and of a database; restores and rescues a database."""
