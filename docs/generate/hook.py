"""Hook of mkdocs: fills in what is generated, and adds the pages that are kept beside the documentation's folder.

A line such as ``<!-- generated: settings -->`` in a page is replaced by text from the sources when the site is built.
mkdocstrings and mkdocs-click generate the reference of the library and of the command line.
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path
from textwrap import dedent

from markdown import Extension, Markdown
from markdown.preprocessors import Preprocessor
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

DOCS = Path(__file__).resolve().parents[1]
EXAMPLE = re.compile(r"^Example:\n((?: +\S.*\n)+)", re.MULTILINE)
# In the repository these pages are one folder above docs/; on the site they are inside it.
BESIDE = re.compile(r"\]\((?:\.\./)?((?:\.\./)*)(CHANGELOG|CONTRIBUTING)\.md")
MARK = re.compile(r"^<!-- generated: (\w+)(?: ([\w.]+))? -->$", re.MULTILINE)


class CommandExamples(Extension):
    """Show the examples in the help of commands as code; mkdocs-click would join their lines."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 (the name is given by Markdown)
        """Run after mkdocs-click and before code blocks are read."""
        md.preprocessors.register(_Examples(md), "command_examples", 100)


class _Examples(Preprocessor):
    def run(self, lines: list[str]) -> list[str]:
        text = EXAMPLE.sub(lambda match: f"Example:\n\n```sh\n{dedent(match[1])}```\n", "\n".join(lines))
        return text.split("\n")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add the examples of commands to the extensions of Markdown."""
    config.markdown_extensions.append(CommandExamples())  # type: ignore[arg-type]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the changelog and the guide for contributors."""
    for name in ("CHANGELOG", "CONTRIBUTING"):
        text = (DOCS.parent / f"{name}.md").read_text(encoding="utf-8").replace("](docs/", "](")
        files.append(File.generated(config, f"{name.lower()}.md", content=text))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Fill in what is generated, show examples with prompts as sessions, and link to the added pages."""
    text = MARK.sub(_generated, markdown).replace("```python\n>>>", "```pycon\n>>>")
    return BESIDE.sub(lambda match: f"]({match[1]}{match[2].lower()}.md", text)


def _generated(mark: re.Match[str]) -> str:
    """Return the text for a mark: ``names MODULE`` becomes a line for mkdocstrings for each public name."""
    if str(DOCS) not in sys.path:  # mkdocs removes it after loading this file
        sys.path.insert(0, str(DOCS))
    if mark[1] == "names":
        module = import_module(mark[2])
        names = [name for name in vars(module)["__all__"] if name != "__version__"]
        return "\n\n".join(f"::: {mark[2]}.{name}" for name in names if not _is_package(module, name))
    text: str = import_module(f"generate.{mark[1]}").text()
    return text


def _is_package(module: object, name: str) -> bool:
    return hasattr(getattr(module, name), "__path__")
