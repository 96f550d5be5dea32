"""A page as one file: it holds all that it needs, lets nothing leave, and no string of its data becomes markup."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import subprocess
import sys
from urllib.parse import unquote

import numpy as np
import pytest

from groundup.cli import main
from groundup.studio import export
from shared.training.checkpoints import CheckpointError
from tests.groundup.studio.digits.made_runs import SMALL_CNN, a_run

SCRIPTS = re.compile(r"<script(.*?)>(.*?)</script>", re.DOTALL)
OFFLINE_PAGES = ["playground", "digits", "convolution", "race"]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """page -> the text of its exported file."""
    folder = tmp_path_factory.mktemp("exported")
    for page in OFFLINE_PAGES:
        export.export(page, folder / f"{page}.html", {})
    return {page: (folder / f"{page}.html").read_text(encoding="utf-8") for page in OFFLINE_PAGES}


@pytest.mark.parametrize("page", OFFLINE_PAGES)
def test_the_file_names_no_other_file(written, page):
    text = written[page]
    without_modules = re.sub(r'"data:text/javascript[^"]*"', "", text)
    assert "/static/" not in without_modules
    assert not re.search(r'\b(?:src|href)="(?!data:|#)', without_modules)
    assert not re.search(r"url\((?!#)", without_modules)


@pytest.mark.parametrize("page", OFFLINE_PAGES)
def test_every_import_of_a_module_is_in_the_import_map(written, page):
    (import_map,) = (json.loads(text) for head, text in SCRIPTS.findall(written[page]) if "importmap" in head)
    sources = {name: unquote(url.partition(",")[2]) for name, url in import_map["imports"].items()}
    assert f"{page}/page.js" in sources
    for name, source in sources.items():
        imported = re.findall(r'^(?:import|\}) .*?from "([^"]+)";', source, re.MULTILINE)
        assert set(imported) <= set(sources), name
        assert "import(" not in source, name


@pytest.mark.parametrize("page", OFFLINE_PAGES)
def test_the_policy_allows_these_scripts_and_no_request(written, page):
    policy = html.unescape(re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', written[page])[1])
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "connect-src" not in policy
    assert "unsafe-eval" not in policy
    for head, text in SCRIPTS.findall(written[page]):
        if "application/json" not in head:
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in policy


def test_the_data_cannot_become_markup():
    text = export.as_json({"name": "</script><img onerror=alert(1)>"})
    assert "<" not in text
    assert json.loads(text) == {"name": "</script><img onerror=alert(1)>"}
    with pytest.raises(ValueError, match="Out of range float"):
        export.as_json({"loss": float("nan")})


def test_digits_carries_its_network_and_images_of_every_digit(written):
    (text,) = (text for head, text in SCRIPTS.findall(written["digits"]) if "application/json" in head)
    data = json.loads(text)
    assert data["network"]["sizes"] == [784, 128, 10]
    assert np.bincount(data["images"]["labels"]).tolist() == [40] * 10
    assert len(base64.b64decode(data["images"]["pixels"])) == 400 * 784


def test_a_run_of_dense_layers_can_be_exported_and_another_cannot(tmp_path):
    a_run(tmp_path / "dense", [784, 4, 10])
    a_run(tmp_path / "convolutional", SMALL_CNN)
    export.export("digits", tmp_path / "digits.html", {"run": tmp_path / "dense"})
    assert '"sizes":[784,4,10]' in (tmp_path / "digits.html").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="convolutional is no stack of dense layers; an exported page computes only"):
        export.export("digits", tmp_path / "other.html", {"run": tmp_path / "convolutional"})
    with pytest.raises(CheckpointError, match="no checkpoint at"):
        export.export("digits", tmp_path / "other.html", {"run": tmp_path / "nothing"})
    assert not (tmp_path / "other.html").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"network": "/nothing"}, "network: there is no run '/nothing'"),
        ({"digit": 10}, "digit: expected a whole number from 0 to 9, got 10"),
        ({"layer": 1, "class": 10}, "class: expected a whole number from 0 to 9, got 10"),
        ({"layer": 7}, "layer: expected one that has maps, 1, 2, 3, 4, 5, 6, got '7'"),
        ({"layer": 6, "row": 5}, "row: expected a whole number from 0 to 4, got 5"),
    ],
)
def test_convolution_opens_only_with_a_number_that_there_is(tmp_path, options, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        export.export("convolution", tmp_path / "page.html", options)
    assert not (tmp_path / "page.html").exists()


def test_a_run_with_maps_can_be_exported_with_its_numbers_and_a_dense_one_cannot(tmp_path):
    a_run(tmp_path / "dense", [784, 4, 10])
    a_run(tmp_path / "mine", SMALL_CNN)
    export.export("convolution", tmp_path / "page.html", {"run": tmp_path / "mine"})
    assert '"name":"mine"' in (tmp_path / "page.html").read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="dense has no convolution, so there are no maps to look at"):
        export.export("convolution", tmp_path / "other.html", {"run": tmp_path / "dense"})


def test_a_module_that_is_not_there_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(export, "HERE", tmp_path)
    (tmp_path / "digits" / "static").mkdir(parents=True)
    (tmp_path / "digits" / "static" / "page.js").write_text('import { gone } from "/static/common/gone.js";\n')
    with pytest.raises(ValueError, match=r"/static/common/gone\.js is imported, but there is no "):
        export.modules("digits/page.js")


@pytest.mark.parametrize("style", ["@import 'other.css';", "p { background: url(picture.png) }", "</style>"])
def test_a_style_sheet_that_needs_another_file_is_refused(tmp_path, style):
    (tmp_path / "page.css").write_text(style)
    with pytest.raises(ValueError, match=r"page\.css refers to another file"):
        export._checked_style(tmp_path / "page.css")


def exit_of(*arguments):
    with pytest.raises(SystemExit) as exit:
        main(["studio", *arguments])
    return exit.value.code


def test_the_command_writes_the_file_and_says_how_large_it_is(tmp_path, capsys):
    assert not exit_of("playground", "--export", str(tmp_path / "page.html"))
    size = (tmp_path / "page.html").stat().st_size
    assert capsys.readouterr().out == f"{tmp_path / 'page.html'}: {size:,} bytes; open it in a browser\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nothing", "--export", "x.html"], "studio: there is no page 'nothing'; the pages are"),
        (
            ["runs", "--export", "x.html"],
            "studio: --export: runs needs its server; the pages playground, digits, convolution, race, kernel",
        ),
        (["--export", "x.html"], "studio: --export: name the page"),
        (["playground", "a", "--export", "x.html"], "studio: --export: a is too much"),
        (["digits", "a", "b", "--export", "x.html"], "studio: --export: b is too much"),
        (
            ["race", "a", "b", "--export", "x.html"],
            "studio: --export: b is too much; digits, convolution and race take one",
        ),
        (
            ["digits", "--walk", "tiles", "--export", "x.html"],
            "studio: --walk belongs to the page kernel, not to digits",
        ),
        (["kernel", "--walk", "tiles"], "studio: --walk goes with --export"),
    ],
)
def test_a_mistake_is_a_sentence(capsys, tmp_path, monkeypatch, arguments, sentence):
    monkeypatch.chdir(tmp_path)
    assert exit_of(*arguments) == 2
    assert sentence in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_export_needs_nothing_of_the_extra_web(tmp_path):
    blocked = "import sys\nfor name in ('starlette', 'uvicorn', 'plotly'): sys.modules[name] = None\n"
    script = f"{blocked}from groundup.cli import main\nmain(['studio', 'digits', '--export', 'digits.html'])"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "digits.html").is_file()
