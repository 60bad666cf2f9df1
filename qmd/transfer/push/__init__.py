"""Sends the folders of this machine to the server of a team."""
