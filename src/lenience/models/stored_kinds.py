"""Import every kind of live model, so that a state of any kind can be restored."""

from lenience.models import cell_counts, live_logistic

__all__ = ["cell_counts", "live_logistic"]
