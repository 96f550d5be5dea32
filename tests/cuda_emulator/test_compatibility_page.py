"""docs/emulator-compatibility.md: its section is what the script wrote, and the script leaves out what it says."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]

TESTS = """
from numba import cuda
from numba.cuda import compile_ptx
from numba.cuda.core import config, ir
from numba.cuda.testing import CUDATestCase

def registers(kernel):
    return kernel.get_regs_per_thread()

def result(kernel):
    return kernel[1, 1]()

class TestKernels(CUDATestCase):
    def test_result(self):
        self.assertEqual(result(kernel), config.ENABLE_CUDASIM)

    def test_code(self):
        self.assertIn("ld.global", kernel.inspect_asm(sig))

    def test_registers(self):
        self._small(kernel)

    def _small(self, kernel):
        assert registers(kernel) < 32

    def test_compiled(self):
        compile_ptx(kernel, ())

class TestBlocks(ir.Block):
    def test_block(self):
        pass
"""


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    path = ROOT / "scripts/emulator_compatibility.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, path.stem, module)  # its dataclasses look there
    spec.loader.exec_module(module)
    return module


def test_tests_of_the_compiler_are_found_by_what_stands_in_them(script: ModuleType) -> None:
    assert script.of_the_compiler(TESTS) == (
        ["TestKernels::test_result"],
        [
            "TestKernels::test_code",
            "TestKernels::test_registers",
            "TestKernels::test_compiled",
            "TestBlocks::test_block",
        ],
    )


def test_the_section_has_parts_that_the_script_makes(script: ModuleType) -> None:
    section = script.PAGE.read_text(encoding="utf-8").partition(script.BEGIN)[2].partition(script.END)[0]
    assert section.count("Made on ") == section.count("### ")
    assert "by hand" not in section
    headings = [line.removeprefix("### ") for line in section.splitlines() if line.startswith("### ")]
    assert headings == [title for title, _ in script.SECTIONS.values()]
    assert "at hand" not in section
    assert "the first of each" not in section  # a whole run
    assert script.with_parts(script.PAGE.read_text(encoding="utf-8"), {}) == script.PAGE.read_text(encoding="utf-8")


def test_what_failed_is_counted_by_its_kind(script: ModuleType, tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        "<testsuite><testcase classname='a' name='right'/>"
        "<testcase classname='a' name='half'><failure message='TypeError: k: the argument holds float16'/></testcase>"
        "<testcase classname='a' name='late'><skipped/></testcase></testsuite>"
    )
    outcome = script.read_report(report)
    assert outcome.verdicts == {"a::right": "passed", "a::half": "failed", "a::late": "skipped"}
    assert outcome.reasons == {"float16": 1}
