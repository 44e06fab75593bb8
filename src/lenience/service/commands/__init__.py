"""Commands that change the log: decide, record outcomes, erase, manage versions and keys."""
