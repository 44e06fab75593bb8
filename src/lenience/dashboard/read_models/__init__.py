"""The data that pages show, read from the log."""
