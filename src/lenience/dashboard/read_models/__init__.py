"""What pages show, read from the log."""
