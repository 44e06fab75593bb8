"""The deployment files: limits of the unit, an image without root, and fixed versions that satisfy the project."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def requirements(*extras: str) -> list[Requirement]:
    """Return what the project needs with these extras on Linux."""
    texts = [*PROJECT["dependencies"], *(text for extra in extras for text in PROJECT["optional-dependencies"][extra])]
    needed = [Requirement(text) for text in texts]
    return [one for one in needed if one.marker is None or one.marker.evaluate({"sys_platform": "linux"})]


def test_the_fixed_versions_satisfy_the_project() -> None:
    lines = (ROOT / "deploy" / "constraints.txt").read_text().splitlines()
    fixed = {canonicalize_name(name): Version(version) for name, version in (line.split("==") for line in lines)}
    for needed in requirements("serve", "history"):
        version = fixed[canonicalize_name(needed.name)]
        assert needed.specifier.contains(version), f"{needed} is fixed at {version}"


@pytest.mark.parametrize(("name", "fixed_in"), [("jinja2", "3.1.6"), ("psycopg", "3.2.5")])
def test_versions_with_known_vulnerabilities_are_not_allowed(name: str, fixed_in: str) -> None:
    (needed,) = [one for one in requirements("serve") if canonicalize_name(one.name) == name]
    earlier = Version(re.sub(r"\d+$", lambda match: str(int(match[0]) - 1), fixed_in))
    assert needed.specifier.contains(fixed_in)
    assert not needed.specifier.contains(earlier)


def test_the_image_has_no_root_user_and_its_health_does_not_depend_on_the_database() -> None:
    text = (ROOT / "deploy" / "Containerfile").read_text()
    lines = text.splitlines()
    assert "USER 10001:10001" in lines
    assert [line for line in lines if line.startswith("FROM")] == [
        "FROM ${PYTHON_IMAGE} AS build",
        "FROM ${PYTHON_IMAGE}",
    ]
    (image,) = [line for line in lines if line.startswith("ARG PYTHON_IMAGE=")]
    assert re.fullmatch(r"ARG PYTHON_IMAGE=python:3\.12[\w.-]*@sha256:[0-9a-f]{64}", image)
    assert "--constraint deploy/constraints.txt" in text
    (check,) = [line for line in lines if line.startswith("HEALTHCHECK")]
    assert "/health'" in check


def test_the_unit_limits_files_memory_and_tasks_and_restarts_forever() -> None:
    lines = (ROOT / "deploy" / "lenience.service").read_text().splitlines()
    unit = lines[lines.index("[Unit]") : lines.index("[Service]")]
    assert "StartLimitIntervalSec=0" in unit
    for wanted in ("LimitNOFILE=65536", "MemoryHigh=3G", "MemoryMax=4G", "TasksMax=512", "OOMPolicy=continue"):
        assert wanted in lines, wanted
