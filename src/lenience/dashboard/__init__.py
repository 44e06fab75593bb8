"""The dashboard, served by ``lenience serve``."""
