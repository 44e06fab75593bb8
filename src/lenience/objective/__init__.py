"""What is to be maximised: one file an objective."""
