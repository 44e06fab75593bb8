"""What to maximise: one file per objective."""
