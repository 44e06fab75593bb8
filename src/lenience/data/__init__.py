"""Real data that comes with the package: small tables, as numbers, with their source and their caveats."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
