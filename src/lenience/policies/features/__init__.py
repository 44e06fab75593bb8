"""Policies for individuals with features."""
