"""mkdocs calls this while it builds the site: the generated pages join the written ones."""

from __future__ import annotations

import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

DOCS = Path(__file__).resolve().parents[1]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the reference, and the pages that stand beside the documentation's folder."""
    if str(DOCS) not in sys.path:  # mkdocs puts the path back after it has loaded this file
        sys.path.insert(0, str(DOCS))
    from generate import api, commands, endpoints, settings

    generated = dict(api.pages())
    generated[commands.PATH] = commands.page()
    generated[settings.PATH] = settings.page()
    generated[endpoints.PATH] = endpoints.page()
    for name in ("CHANGELOG", "CONTRIBUTING"):
        text = (DOCS.parent / f"{name}.md").read_text(encoding="utf-8")
        generated[f"{name.lower()}.md"] = text.replace("](docs/", "](")
    for path, text in generated.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Show examples as sessions, what is typed in colour and what is answered plain; link to the reference."""
    from generate.sources import to_reference

    shown = markdown.replace("```python\n>>>", "```pycon\n>>>")
    return to_reference(shown, page.file.src_uri.count("/"))
