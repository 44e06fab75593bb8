"""Mutation testing: change the code on purpose, and see whether a test notices."""
