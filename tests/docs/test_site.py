"""The documentation site builds without a warning, its links lead somewhere, and its reference leaves nothing out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest
import yaml

import lenience
from apart import apart
from docstring_coverage import public_modules, public_names
from lenience.cli import COMMANDS, cli
from site_links import Page, problems

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    surroundings = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": path}
    done = subprocess.run(command, cwd=ROOT, env=surroundings, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stderr
    return folder


@pytest.fixture(scope="module")
def reference(site: Path) -> dict[str, tuple[Page, str]]:
    """The reference's pages, each parsed and as text."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in (site / "reference").glob("*.html")}
    return {name: (Page(text), re.sub(r"<[^>]+>", "", text)) for name, text in texts.items()}


def test_every_link_leads_somewhere_and_nothing_comes_from_elsewhere(site: Path) -> None:
    assert problems(site) == []


def test_the_search_needs_no_server(site: Path, browser: Browser) -> None:
    page = browser.new_page()
    page.goto((site / "how-to" / "cost.html").as_uri())
    page.locator(".md-search__input").press_sequentially("gittins")
    found = page.locator(".md-search-result__link")
    found.first.wait_for()
    assert any("reference/lenience.html" in str(link.get_attribute("href")) for link in found.all())
    page.close()


def test_links_lead_somewhere_in_the_repository_too() -> None:
    checked = 0
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        words = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", words):
            if "://" not in link:
                assert (page.parent / link).exists(), f"{page.name} links to {link}"
                checked += 1
    assert checked > 100


def test_the_checker_finds_what_is_broken(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="b.html">x</a><a href="a.html#no">y</a><script src="https://cdn/x.js"></script>'
    )
    assert problems(tmp_path) == [
        "a.html links to b.html, which does not exist",
        "a.html links to a.html#no, where there is no such place",
        "a.html loads https://cdn/x.js from elsewhere",
    ]


def test_every_public_name_is_in_the_reference(reference: dict[str, tuple[Page, str]]) -> None:
    for module_name, module in public_modules().items():
        page, _ = reference[f"{module_name.removeprefix('lenience.')}.html"]
        names = [name for name in public_names(module) if f"{module_name}.{name}" not in public_modules()]
        assert names
        assert {f"{module_name}.{name}" for name in names} <= page.places


def test_public_methods_are_in_the_reference(reference: dict[str, tuple[Page, str]]) -> None:
    page, text = reference["lenience.html"]
    wanted = {"Belief.observe", "Discounted.solve", "Discounted.from_rates", "OptimalPolicy.explain", "Client.decide",
              "ExposurePolicy.accept_now", "History.divide", "SegmentPolicies.refresh", "Bounds.midpoint"}  # fmt: skip
    assert {f"lenience.{name}" for name in wanted} <= page.places
    section = text[text.index("Describe what is known of a success probability") :]
    assert "Number of observations, above 0." in section  # parameters, from the section of the docstring
    assert "Belief(n=13.0, s=9.0)" in section  # and the examples


def commands(path: str, group: click.Group) -> list[tuple[str, click.Command]]:
    found: list[tuple[str, click.Command]] = []
    with click.Context(group) as context:
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            found.append((f"{path} {name}", command))
            if isinstance(command, click.Group):
                found += commands(f"{path} {name}", command)
    return found


def test_every_command_and_option_is_in_the_reference(reference: dict[str, tuple[Page, str]]) -> None:
    page, text = reference["options.html"]
    found = commands("lenience", cli)
    assert {name for name, _ in found} >= {f"lenience {name}" for name in COMMANDS}
    for name, command in found:
        assert name.replace(" ", "-") in page.places
        section = text.split(f"\n{name}¶")[1].split("¶")[0]
        for parameter in command.params:
            for option in parameter.opts if isinstance(parameter, click.Option) else ():
                assert option in section, f"{name} {option}"


def test_every_endpoint_is_in_the_reference(reference: dict[str, tuple[Page, str]]) -> None:
    sys.path.insert(0, str(ROOT / "docs"))
    from generate.endpoints import anchor, description

    page, _ = reference["endpoints.html"]
    described = apart(description)
    operations = [(method, path) for path, methods in described["paths"].items() for method in methods]
    assert len(operations) >= 22
    for method, path in operations:
        assert anchor(method, path) in page.places
    assert set(described["components"]["schemas"]) <= page.places


def test_every_environment_variable_is_in_the_reference(reference: dict[str, tuple[Page, str]]) -> None:
    _, text = reference["settings.html"]
    named = set()
    for file in (ROOT / "src").rglob("*.py"):
        named |= set(re.findall(r"\"(LENIENCE_[A-Z_]+)\"", file.read_text(encoding="utf-8")))
    assert named
    for name in named:
        assert name in text


def test_every_page_is_in_the_navigation_once() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = re.findall(r"[\w/-]+\.md", text[text.index("nav:") :])
    assert len(pages) == len(set(pages))
    written = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert written <= set(pages)


def test_citation_has_the_version_of_the_software() -> None:
    about = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert about["version"] == lenience.__version__
    assert about["license"] == "Apache-2.0"
    assert {"cff-version", "message", "title", "authors", "references"} <= set(about)
    assert f"version = {{{lenience.__version__}}}" in (ROOT / "docs" / "how-to" / "cite.md").read_text(encoding="utf-8")
