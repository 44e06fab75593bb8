"""Dynamic programs, one package per recursion family: numbers in, numbers out."""
