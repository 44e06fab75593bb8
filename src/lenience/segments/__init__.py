"""Many populations at once: cells of the arrivals, each with a belief, an objective and a policy of its own."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
