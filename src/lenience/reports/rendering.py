"""Fill the reports' templates."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from lenience.__about__ import __version__

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, **values: Any) -> str:
    """Fill a template and return one self-contained HTML page.

    Parameters
    ----------
    template : str
        The name of a file in ``reports/templates``.
    **values : Any
        The values that the template names. A template that names any other value raises ``UndefinedError``.

    Returns
    -------
    str
        The page. Text is escaped unless it is ``markupsafe.Markup``.
    """
    return _environment().get_template(template).render(version=__version__, **values)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("lenience.reports", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
