"""Optimal accept/reject policies when only the accepted reveal their outcome (the selective-labels problem).

The file ``__init__.pyi`` lists the public names, once: type checkers read it, and so does the loader below. Importing
the package loads no heavy library, because each name is imported when it is first used.
"""

import lazy_loader

# Objectives register themselves by their tag, so that a stored policy can be read whatever was imported before.
import lenience.objectives as _registered  # noqa: F401

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
