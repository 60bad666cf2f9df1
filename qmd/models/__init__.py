"""Chooses, opens, guards and lists the models of a knowledge base."""
