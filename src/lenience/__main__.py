"""`python -m lenience` is the command line."""

from lenience.cli import main

main()
