"""The dashboard: what the policies believe, what they do, and what would change it; served by ``lenience serve``."""
