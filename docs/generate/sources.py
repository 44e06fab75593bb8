"""Links to sources: in the repository they open the file, on the site the page that is generated from it."""

from __future__ import annotations

import re

from generate import api, commands, endpoints, settings

LINK = re.compile(r"\]\((?:\.\./)+src/lenience/([\w./]+?)(#[\w.]+)?\)")
WHOLE = {"cli/": commands.PATH, "service/http/": endpoints.PATH, "settings.py": settings.PATH}


def page_of(source: str) -> str:
    """The generated page about a file or folder of the package.

    >>> page_of("segments/moved.py"), page_of("settings.py")
    ('reference/segments.md', 'reference/settings.md')
    """
    for start, page in WHOLE.items():
        if source.startswith(start):
            return page
    part = source.split("/")[0].removesuffix(".py")
    for name, (_, _, prefixes) in api.PAGES.items():
        if part in prefixes:
            return f"reference/{name}.md"
    raise ValueError(f"no page of the reference is made from src/lenience/{source}")


def to_reference(markdown: str, depth: int) -> str:
    """A page so many folders deep, with its links to sources turned to the reference.

    >>> to_reference("a [bound](../src/lenience/segments/moved.py#loss_of_keeping)", 0)
    'a [bound](reference/segments.md#loss_of_keeping)'
    """
    return LINK.sub(lambda found: f"]({'../' * depth}{page_of(found[1])}{found[2] or ''})", markdown)
