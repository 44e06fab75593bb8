"""Where beliefs come from: one protocol (labels in, a belief for each cell out), one file per model."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
