"""Segments: the population divided into cells, each with its own belief, objective and policy."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
