"""Import one file with other contents, so that several faults can be tried at a time in one copy of the project."""

from __future__ import annotations

from importlib.machinery import SourceFileLoader
from types import CodeType, ModuleType

from _pytest.assertion.rewrite import AssertionRewritingHook


def overlay(path: str, source: str) -> None:
    """Let this process import the file ``path`` as if it contained ``source``. Other processes do not see it.

    Pytest imports the files on its command line itself, for example those whose docstrings have examples.
    """
    get_code, exec_module = SourceFileLoader.get_code, AssertionRewritingHook.exec_module
    code = compile(source, path, "exec", dont_inherit=True)

    def faulty_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        return code if self.path == path else get_code(self, fullname)

    def exec_faulty(self: AssertionRewritingHook, module: ModuleType) -> None:
        if module.__spec__ is not None and module.__spec__.origin == path:
            exec(code, module.__dict__)
        else:
            exec_module(self, module)

    setattr(SourceFileLoader, "get_code", faulty_code)  # noqa: B010  (a method)
    setattr(AssertionRewritingHook, "exec_module", exec_faulty)  # noqa: B010
