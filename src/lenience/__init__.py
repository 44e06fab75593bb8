"""Optimal accept/reject policies when only the accepted reveal their outcome (the selective-labels problem).

The file ``__init__.pyi`` lists the public names, once: type checkers read it, and so does the loader below. Importing
the package loads no heavy library, because each name is imported when it is first used.
"""

import lazy_loader

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    if name in __all__ and name != "__version__":
        import lenience.objectives  # noqa: F401  (policies read from JSON must know every objective)
    return _load(name)
