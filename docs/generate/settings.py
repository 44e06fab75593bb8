"""The table of settings, from the module that lists them."""

from __future__ import annotations

from generate.tables import table
from lenience.core.settings import OF_OTHERS, OWN


def text() -> str:
    """Return the tables of our variables and of those of other libraries."""
    return "\n\n".join(
        [
            table(["variable", "meaning"], [[f"`{name}`", meaning] for name, meaning in OWN.items()]),
            "Libraries that lenience uses read variables of their own. These matter in practice:",
            table(["variable", "meaning"], [[f"`{name}`", meaning] for name, meaning in OF_OTHERS.items()]),
        ]
    )
