"""The state of an installation and of a database: status, doctor, restore, rescue."""
