"""`groundup studio`: starting, the address, the ends, and what it says when it cannot start."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import shlex
import signal
import socket
import subprocess
import sys
import time

import pytest

from tests.program import ran
from tests.wide import wide, widely

pytest.importorskip("uvicorn", reason="the studio's extra web is not installed")

PROGRAM = [sys.executable, "-c", "from groundup.entry import main; main()", "studio", "--no-browser"]


@pytest.fixture
def started(tmp_path):
    """started(*arguments): a studio as a process of its own, once it has told its address."""
    processes = []

    def start(*arguments):
        process = subprocess.Popen(
            [*PROGRAM, *arguments], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        processes.append(process)
        address = re.search(r"http://127\.0\.0\.1:(\d+)/(\S*)", process.stdout.readline())
        assert process.stdout.readline() == "It answers only this machine. Ctrl-C ends it.\n"
        return process, address

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


def answered(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=200)
    connection.request("GET", "/" + path)
    answer = connection.getresponse()
    return answer.status, answer.getheader("location")


def children_of(process):
    """The numbers of the processes that it has started."""
    asked = ["ps", "-o", "pid=", "--ppid", str(process.pid)]
    return subprocess.run(asked, capture_output=True, text=True).stdout.split()


def all_ended(children):
    left = subprocess.run(["ps", "-o", "stat=", "-p", ",".join(children)], capture_output=True, text=True)
    return all(state.startswith("Z") for state in left.stdout.split())


@pytest.mark.parametrize("end", widely([signal.SIGINT, signal.SIGTERM]), ids=["Ctrl-C", "SIGTERM"])
def test_it_answers_at_the_address_that_it_prints_until_it_is_ended(started, end):
    process, address = started("--port", "0")
    assert answered(address[1], address[2]) == (303, "/")
    process.send_signal(end)
    out, err = process.communicate(timeout=200)
    assert process.returncode == (0 if end == signal.SIGINT else -signal.SIGTERM)
    assert err == ""
    assert out == ("The studio has ended.\n" if end == signal.SIGINT else "")


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="Windows has no SIGHUP")
def test_a_terminal_that_is_closed_ends_it_with_its_processes(started):
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # these tests may run under nohup
    try:
        process, _ = started("kernel", "--port", "0")  # which starts its process at once
    finally:
        signal.signal(signal.SIGHUP, before)
    children = children_of(process)
    assert children
    process.stdout.close()
    process.send_signal(signal.SIGHUP)
    assert process.wait(200) == 0
    assert process.stderr.read() == ""
    assert all_ended(children)


@wide
@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="Windows has no SIGHUP")
def test_nohup_keeps_it(started):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process, address = started("--port", "0")
    finally:
        signal.signal(signal.SIGHUP, before)
    process.send_signal(signal.SIGHUP)
    time.sleep(0.2)
    assert answered(address[1], address[2]) == (303, "/")


@wide
def test_nobody_waits_for_a_computation_at_the_end():
    script = (
        "import threading, time\n"
        "from groundup.studio import server\n"
        "server.PATIENCE = 0.1\n"
        "threading.Thread(target=time.sleep, args=(60,)).start()\n"
        "print('told')\n"
        "server._end_what_computes()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=200)
    assert (done.returncode, done.stdout, done.stderr) == (0, "told\n", "")


def test_a_browser_is_given_another_key_than_the_one_that_is_printed(monkeypatch, tmp_path):
    from groundup.studio import server

    told, opened = [], []

    class NeverRuns(server.Server):
        def run(self, sockets=None):
            self.ready()

    monkeypatch.setattr(server, "Server", NeverRuns)
    monkeypatch.setattr(server, "has_browser", lambda: True)
    monkeypatch.setattr("webbrowser.open", opened.append)
    server.serve("digits", tmp_path, [], 0, True, told.append)
    printed = re.search(r"http://127\.0\.0\.1:\d+/digits\?token=(\S+)", told[0])
    until = time.monotonic() + 100
    while not opened and time.monotonic() < until:
        time.sleep(0.01)
    assert opened[0].partition("=")[0] == printed[0].partition("=")[0]
    assert opened[0].partition("=")[2] != printed[1]
    assert len(opened[0]) == len(printed[0])


@wide
def test_ctrl_c_ends_it_while_a_page_listens(started):
    process, address = started("--port", "0")
    with socket.create_connection(("127.0.0.1", int(address[1])), 100) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n")  # a request that never ends
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=200)
    assert (process.returncode, err) == (0, "")
    assert out.endswith("The studio has ended.\n")


@wide
def test_ctrl_c_in_the_middle_of_a_computation_is_quiet_and_leaves_no_process(started):
    process, address = started("--port", "0")
    key = address[2].partition("token=")[2]
    headers = {"Cookie": f"groundup-studio-{address[1]}={key}", "Content-Type": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", int(address[1]), timeout=200)
    connection.request("POST", "/api/kernel/begin", "{}", headers)
    session = json.loads(connection.getresponse().read())["session"]
    asked = {"session": session, "target": {"kind": "project", "name": "tiled_16", "size": [64, 64, 64]}}
    connection.request("POST", "/api/kernel/open", json.dumps(asked), headers)  # its process takes seconds to begin
    until = time.monotonic() + 200
    time.sleep(0.5)
    while not (children := children_of(process)) and time.monotonic() < until:  # on a busy machine
        time.sleep(0.05)
    assert children
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=200)
    connection.close()
    assert (process.returncode, err, out) == (0, "", "The studio has ended.\n")
    assert all_ended(children)


@wide
@pytest.mark.skipif(sys.platform == "win32", reason="a shell of POSIX closes the output")
def test_without_a_standard_output_it_answers_all_the_same(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = shlex.join([*PROGRAM, "--port", str(port)])
    process = subprocess.Popen(["sh", "-c", f"exec {command} >&-"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        until, status = time.monotonic() + 200, 0
        while not status and time.monotonic() < until and process.poll() is None:
            with contextlib.suppress(OSError):
                status, _ = answered(port, "")
            time.sleep(0.05)
        assert status == 401
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=200)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, err) == (0, "")


def test_a_port_that_is_taken_is_an_error_that_says_what_to_do(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, _, err = ran(capsys, "studio", "--no-browser", "--port", port)
    assert code == 2
    assert f"studio: port {port} cannot be used (Address already in use); choose another with --port" in err


def test_a_mistake_is_told_before_anything_starts(capsys):
    code, _, err = ran(capsys, "studio", "--no-browser", "nothing")
    assert code == 2
    assert "studio: there is no page 'nothing'; the pages are" in err


def test_without_the_extra_one_sentence_gives_the_command(tmp_path):
    blocked = "import sys; sys.modules['uvicorn'] = None\n" + PROGRAM[2].replace("main()", "main(['studio'])")
    done = subprocess.run([sys.executable, "-c", blocked], cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "not installed: uvicorn; install the extra web: python -m pip install" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@wide
def test_what_lies_before_the_address_imports_nothing_heavy(tmp_path):
    script = "import pathlib\nfrom groundup.studio.app import Studio, application\napplication(Studio(pathlib.Path()))"
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "groundup.studio.app" in loaded
    assert not loaded & {"matplotlib", "numba", "torch", "plotly"}
