"""The stopping problem: labels arrive at once, and a rejection is final."""
