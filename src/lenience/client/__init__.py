"""The decision service from Python."""
