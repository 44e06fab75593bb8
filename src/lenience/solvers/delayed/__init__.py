"""The recursion over (n, s, pending): labels arrive late."""
