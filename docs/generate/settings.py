"""Every setting, from the one place in which the software names them."""

from __future__ import annotations

from generate.markdown import table
from lenience.core.settings import OF_OTHERS, OWN

PATH = "reference/settings.md"


def page() -> str:
    """The page."""
    return (
        "\n\n".join(
            [
                "# Settings",
                "Everything is set by options and arguments; these environment variables exist besides. An option "
                "given on the command line comes before its variable.",
                table(["variable", "meaning"], [[f"`{name}`", meaning] for name, meaning in OWN.items()]),
                "Libraries that lenience is built on read variables of their own. These matter in practice:",
                table(["variable", "meaning"], [[f"`{name}`", meaning] for name, meaning in OF_OTHERS.items()]),
            ]
        )
        + "\n"
    )
