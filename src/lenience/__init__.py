"""Optimal accept/reject policies when only the accepted reveal their outcome (the selective-labels problem).

The file ``__init__.pyi`` lists the public names, once: type checkers read it, and so does the loader below. Importing
the package loads no heavy library, because each name is imported when it is first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
