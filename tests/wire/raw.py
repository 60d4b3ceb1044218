"""A connection on which anything can be sent, also what no client library would send."""

import http.client
import io
import socket
import threading
from typing import Self

from tests.cases.serving import Response


class RawConnection:
    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self._reader = self._socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._reader.close()
        self._socket.close()

    def start(self, piece: bytes) -> None:
        """Sends a piece of a request, and does not wait."""
        self._socket.sendall(piece)

    def line(self) -> bytes:
        """The next line that comes; empty where the other side has ended the connection."""
        return self._reader.readline()

    def post(self, path: str, content: bytes) -> Response:
        """Sends the content with its length, and reads while it sends: the answer may come early."""
        return self.send(head(path, f"Content-Length: {len(content)}"), content)

    def post_chunked(self, path: str, content: bytes, chunk: int = 65536) -> Response:
        chunks = io.BytesIO()
        for start in range(0, len(content), chunk):
            piece = content[start : start + chunk]
            chunks.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        return self.send(head(path, "Transfer-Encoding: chunked"), chunks.getvalue() + b"0\r\n\r\n")

    def send(self, *pieces: bytes) -> Response:
        sender = threading.Thread(target=self._send, args=pieces, daemon=True)
        sender.start()
        response = http.client.HTTPResponse(_Unclosed(self._reader), method="POST")
        response.begin()
        answer = Response(response.status, response.headers, response.read())
        sender.join(20)
        return answer

    def _send(self, *pieces: bytes) -> None:
        try:
            for piece in pieces:
                self._socket.sendall(piece)
        except OSError:  # the other side has heard enough; its answer tells
            pass


class _Unclosed:
    """Lets one reader serve several answers: HTTPResponse would make, and close, one of its own."""

    def __init__(self, reader: io.BufferedReader) -> None:
        self._reader = reader

    def makefile(self, _mode: str) -> "_Unclosed":
        return self

    def __getattr__(self, name: str) -> object:
        return getattr(self._reader, name)

    def close(self) -> None:
        pass


def head(path: str, *lines: str) -> bytes:
    fixed = (f"POST {path} HTTP/1.1", "Host: 127.0.0.1", "User-Agent: Go-http-client/1.1")
    return "\r\n".join([*fixed, "Content-Type: application/json", *lines, "", ""]).encode()
