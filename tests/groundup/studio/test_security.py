"""The studio answers its own pages, on this machine, to those who have the key; and nobody else."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Iterator

import pytest

from groundup.studio.security import MOST_BYTES
from tests.studio_server import KEY, ONCE, RunningStudio, running


@pytest.fixture(scope="module")
def studio_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStudio]:
    """One studio for all tests of this file: they leave nothing behind in it."""
    with running(tmp_path_factory.mktemp("studio")) as server:
        yield server


def test_the_key_in_the_address_becomes_a_cookie_that_scripts_cannot_read(studio_server):
    answer = studio_server.ask("GET", f"/?token={KEY}&run=a%26b", key=None)
    assert (answer.status, answer.headers["location"]) == (303, "/?run=a%26b")
    cookie = answer.headers["set-cookie"]
    assert f"groundup-studio-{studio_server.port}={KEY}" in cookie
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()


@pytest.mark.parametrize("key", [None, "", "wrong", KEY + "x", "ключ".encode().decode("latin-1")])
@pytest.mark.parametrize("path", ["/", "/static/common/studio.css"])
def test_without_the_key_nothing_is_answered(studio_server, key, path):
    answer = studio_server.ask("GET", path, key=key)
    assert answer.status == 401
    assert b"Open the whole address that `groundup studio` printed" in answer.body


def test_the_key_on_a_browsers_command_line_opens_the_door_once(studio_server):
    assert studio_server.ask("GET", "/", key=ONCE).status == 401  # it is no cookie
    answer = studio_server.ask("GET", f"/digits?token={ONCE}", key=None)
    assert (answer.status, answer.headers["location"]) == (303, "/digits")
    assert f"groundup-studio-{studio_server.port}={KEY}" in answer.headers["set-cookie"]
    again = studio_server.ask("GET", f"/digits?token={ONCE}", key=None)
    assert again.status == 401
    assert "set-cookie" not in again.headers
    for empty in ("token=", "token", ""):
        assert studio_server.ask("GET", f"/?{empty}", key=None).status == 401
    assert studio_server.ask("GET", f"/?token={KEY}", key=None).status == 303


def test_a_wrong_key_in_the_address_is_refused_and_kept_nowhere(studio_server):
    answer = studio_server.ask("GET", "/?token=wrong", key=None)
    assert answer.status == 401
    assert "set-cookie" not in answer.headers


def test_the_redirection_never_leaves_the_studio(studio_server):
    answer = studio_server.ask("GET", f"//elsewhere.example/page?token={KEY}", key=None)
    assert answer.headers.get("location", "/").startswith("/")
    assert not answer.headers.get("location", "/").startswith("//")


@pytest.mark.parametrize("host", ["elsewhere.example", "127.0.0.1", "127.0.0.1:1", "", "localhost.elsewhere.example"])
def test_a_foreign_host_is_refused_even_with_the_key(studio_server, host):
    answer = studio_server.ask("GET", "/", headers={"Host": host})
    assert answer.status in (400, 403)
    assert b"groundup-studio" not in answer.body


def test_localhost_is_the_studios_own_name_too(studio_server):
    assert studio_server.ask("GET", "/", headers={"Host": f"localhost:{studio_server.port}"}).status == 200
    assert studio_server.ask("GET", "/", headers={"Host": f"LOCALHOST:{studio_server.port}"}).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://elsewhere.example"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_requests_of_other_websites_are_refused_even_with_the_key(studio_server, headers):
    answer = studio_server.ask("GET", "/", headers=headers)
    assert answer.status == 403
    assert answer.json["error"] == "refused: the request comes from another website"


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"])
def test_other_methods_are_refused(studio_server, method):
    assert studio_server.ask(method, "/").status == 405


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_what_a_form_could_send_is_refused(studio_server, kind):
    answer = studio_server.ask("POST", "/", b"{}", headers={"Content-Type": kind})
    assert (answer.status, answer.json["error"]) == (415, "refused: the studio takes application/json")


def test_a_large_body_is_refused_before_it_is_read(studio_server):
    answer = studio_server.ask("POST", "/", b"{}", headers={"Content-Length": str(MOST_BYTES + 1)})
    assert (answer.status, answer.json["error"]) == (413, "refused: what was sent has more than 16 MiB")


def test_a_length_that_is_no_number_is_refused(studio_server):
    with socket.create_connection(("127.0.0.1", studio_server.port), 100) as connection:
        request = f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{studio_server.port}\r\nContent-Length: {'9' * 400}\r\n\r\n"
        connection.sendall(request.encode())
        assert b" 400 " in connection.recv(100) or b" 415 " in connection.recv(100)


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/common/..%2f..%2fapp.py",
        "/static//etc/passwd",
        "/static/common/%00",
        "/static/common/../../../../../../etc/passwd",
    ],
)
def test_only_the_pages_own_files_are_served(studio_server, path):
    assert studio_server.ask("GET", path).status in (400, 404)


@pytest.mark.parametrize("path", ["/", "/static/common/studio.css", "/static/common/nothing.js", "/nothing"])
def test_every_answer_forbids_foreign_scripts_frames_and_guesses(studio_server, path):
    headers = studio_server.ask("GET", path).headers
    policy = dict(each.split(" ", 1) for each in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "access-control-allow-origin" not in headers


def test_a_page_asks_only_for_paths_inside_the_given_folders(studio_server):
    from groundup.studio.answers import Refused

    folder = studio_server.studio.folder
    (folder / "inside").mkdir()
    (folder / "out").symlink_to("/etc")
    assert studio_server.studio.allowed("inside") == (folder / "inside").resolve()
    for path in ("..", "/etc/passwd", "out/passwd", "inside/../../x", f"{folder}-beside"):
        with pytest.raises(Refused, match="outside the folders that this studio was given"):
            studio_server.studio.allowed(path)


def test_a_thousand_strange_requests_leave_it_answering(studio_server):
    random = __import__("random").Random(0)
    for number in range(1000):
        with socket.create_connection(("127.0.0.1", studio_server.port), 100) as connection:
            data = bytes(random.randrange(256) for _ in range(random.randrange(1, 200)))
            start = b"GET /" if number % 2 else b""
            connection.sendall(start + data + (b"\r\n\r\n" if number % 3 else b""))
    assert studio_server.ask("GET", "/").status == 200


def test_an_unknown_address_is_a_404(studio_server):
    assert studio_server.ask("GET", "/nothing").status == 404
    assert json.loads(studio_server.ask("GET", "/static/common/nothing.js").body)["error"] == (
        "there is no file /static/common/nothing.js"
    )


def test_it_listens_on_127_0_0_1_only(studio_server):
    others = {each[4][0] for each in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)} - {"127.0.0.1"}
    for other in others:
        connection = http.client.HTTPConnection(other, studio_server.port, timeout=5)
        with pytest.raises(OSError, match=r"refused|unreachable"):
            connection.request("GET", "/")


@pytest.mark.parametrize(
    "half",
    [
        b"",
        b"GET / HT",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ",
        b"POST /api/digits/own HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\nhalf",
        b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhalf",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET / HT",
    ],
    ids=["nothing", "a line", "headers", "a body", "chunks", "a second request"],
)
def test_a_request_that_is_sent_half_is_closed_after_some_seconds(studio_server, half, monkeypatch):
    monkeypatch.setattr("groundup.studio.impatient.TO_SEND", 0.4)
    with socket.create_connection(("127.0.0.1", studio_server.port), timeout=200) as connection:
        connection.sendall(half)
        begin = time.monotonic()
        while connection.recv(1 << 16):
            pass
        assert 0.2 < time.monotonic() - begin < 50


def test_between_two_requests_a_connection_may_wait_longer(studio_server, monkeypatch):
    monkeypatch.setattr("groundup.studio.impatient.TO_SEND", 0.2)
    connection = http.client.HTTPConnection("127.0.0.1", studio_server.port, timeout=200)
    connection.request("GET", "/")
    connection.getresponse().read()
    first = connection.sock
    time.sleep(0.6)
    connection.request("GET", "/")
    assert connection.getresponse().status == 401
    assert connection.sock is first
    connection.close()
