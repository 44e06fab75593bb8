"""Policies that look at features."""
