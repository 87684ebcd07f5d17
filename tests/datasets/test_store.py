from __future__ import annotations

import functools
import hashlib
import http.server
import socket
import threading

import pytest

from fenchel.datasets import load, load_dti
from fenchel.datasets._store import Resource, cache_folder, fetch

CONTENT = b"x,y\n1,2\n"
RESOURCE = Resource("somewhere/some.csv", hashlib.sha256(CONTENT).hexdigest())


def put(folder, content=CONTENT):
    path = folder / RESOURCE.file
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    return folder


def files(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.*"))


@pytest.fixture
def server(tmp_path):
    """A folder and the address at which it is served."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder))
    ) as serving:
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield folder, f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()
        thread.join()


def test_cache_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "fenchel"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for unusable in ("", "relative/folder"):
        monkeypatch.setenv("XDG_CACHE_HOME", unusable)
        assert cache_folder() == tmp_path / "home" / ".cache" / "fenchel"


def test_from_the_data_folder(tmp_path, monkeypatch, cache):
    monkeypatch.setenv("FENCHEL_DATA", str(put(tmp_path / "mine")))
    assert fetch(RESOURCE) == CONTENT
    assert not cache.exists()


def test_wrong_file_in_the_data_folder(tmp_path, monkeypatch, cache):
    put(cache)
    monkeypatch.setenv("FENCHEL_DATA", str(put(tmp_path / "mine", b"other")))
    with pytest.raises(OSError, match=rf"has sha256 [0-9a-f]+, but must have {RESOURCE.sha256}"):
        fetch(RESOURCE)


def test_from_the_cache(cache, tmp_path, monkeypatch):
    put(cache)
    assert fetch(RESOURCE) == CONTENT
    monkeypatch.setenv("FENCHEL_DATA", str(tmp_path / "empty"))
    assert fetch(RESOURCE) == CONTENT


def test_download_once(server, cache, monkeypatch):
    folder, address = server
    put(folder)
    monkeypatch.setenv("FENCHEL_DATA_URL", address + "/")
    assert fetch(RESOURCE) == CONTENT
    assert files(cache) == [RESOURCE.file]
    (folder / RESOURCE.file).unlink()
    assert fetch(RESOURCE) == CONTENT


def test_download_from_a_folder(tmp_path, cache, monkeypatch):
    monkeypatch.setenv("FENCHEL_DATA_URL", put(tmp_path / "mirror").as_uri())
    assert fetch(RESOURCE) == CONTENT
    assert files(cache) == [RESOURCE.file]


@pytest.mark.parametrize("content", [b"", b"other", CONTENT[:-1]])
def test_download_with_another_checksum_leaves_nothing(server, cache, monkeypatch, content):
    folder, address = server
    put(folder, content)
    monkeypatch.setenv("FENCHEL_DATA_URL", address)
    with pytest.raises(OSError, match=rf"must have {RESOURCE.sha256}"):
        fetch(RESOURCE)
    assert files(cache) == []


def test_failed_download_leaves_nothing(server, cache, monkeypatch):
    monkeypatch.setenv("FENCHEL_DATA_URL", server[1])
    with pytest.raises(OSError, match=r"some.csv could not be downloaded from http.*404"):
        fetch(RESOURCE)
    assert files(cache) == []


def test_spoilt_cache_is_an_error_that_names_the_file(server, cache, monkeypatch):
    put(cache, b"spoilt")
    path = cache / RESOURCE.file
    folder, address = server
    put(folder)
    for base in ("", address):
        monkeypatch.setenv("FENCHEL_DATA_URL", base)
        with pytest.raises(OSError, match=rf"must have {RESOURCE.sha256}") as caught:
            fetch(RESOURCE)
        assert str(path) in str(caught.value)
        assert path.read_bytes() == b"spoilt"
    path.unlink()
    assert fetch(RESOURCE) == CONTENT


def test_broken_connection_names_the_file_and_leaves_nothing(cache, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        monkeypatch.setenv("FENCHEL_DATA_URL", address)

        def hang_up():
            connection, _ = listener.accept()
            connection.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        with pytest.raises(OSError, match=r"some.csv could not be downloaded from http"):
            fetch(RESOURCE)
        thread.join()
    assert files(cache) == []


def test_unknown_scheme(monkeypatch):
    monkeypatch.setenv("FENCHEL_DATA_URL", "ftp://example.org")
    with pytest.raises(ValueError, match=r"FENCHEL_DATA_URL must be .*, got 'ftp://example.org'"):
        fetch(RESOURCE)


@pytest.mark.parametrize(
    ("call", "file", "sha256"),
    [
        (lambda: load("ufc"), "quantile20/ufc.csv", "17f5488863f47df2"),
        (load_dti, "dti/dti.csv", "286976e2f36b0039"),
    ],
)
def test_missing_file_says_how_to_provide_it(call, file, sha256, cache, tmp_path, monkeypatch):
    monkeypatch.setenv("FENCHEL_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError) as caught:
        call()
    message = str(caught.value)
    for part in (file, sha256, "FENCHEL_DATA ", str(tmp_path), str(cache), "FENCHEL_DATA_URL"):
        assert part in message
    assert message.count(". ") == 0
