"""The dynamic programs: one file a recursion, numbers in, numbers out."""
