"""Figures: functions that return a matplotlib figure. :func:`save` writes it as PNG, SVG or PDF."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
