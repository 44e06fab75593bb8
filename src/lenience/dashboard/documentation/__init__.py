"""The documentation pack of a policy: facts from the log, and chapters in the order of model-risk guidance."""
