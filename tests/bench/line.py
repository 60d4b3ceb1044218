"""A client that costs next to nothing, so that what is measured is the server's answer and not the client."""

import socket
import struct
import time
from typing import Self

from tests.cases.serving import GO_HEADERS

_HEAD_ENDS, _CHUNKS_END = b"\r\n\r\n", b"0\r\n\r\n"
_PATIENCE = struct.pack("ll", 30, 0)  # seconds; by the kernel, as a timeout of Python's costs a poll for each call
_MOST = 1 << 20  # bytes of an answer


class Line:
    """A kept-alive connection that asks as kube-scheduler does, one request after the other."""

    def __init__(self, port: int):
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as Go's client does
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _PATIENCE)
        self._headers = "".join(f"{name}: {value}\r\n" for name, value in GO_HEADERS.items())
        self._buffer = memoryview(bytearray(_MOST))  # always the same one: a new one costs the kernel pages

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, verb: str, body: bytes) -> float:
        """Microseconds from the request to the last byte of the answer. Raises RuntimeError unless it is 200."""
        head = (
            f"POST /extender/{verb} HTTP/1.1\r\nHost: 127.0.0.1\r\n{self._headers}Content-Length: {len(body)}\r\n\r\n"
        )
        request = head.encode() + body
        started = time.perf_counter()
        self._socket.sendall(request)
        size = self._receive(verb, 0)
        while not _is_whole(self._buffer[:size].tobytes()):
            size = self._receive(verb, size)
        took = time.perf_counter() - started
        if self._buffer[:13] != b"HTTP/1.1 200 ":
            raise RuntimeError(f"{verb}: {self._buffer[:100].tobytes()!r}")
        return took * 1e6

    def _receive(self, verb: str, size: int) -> int:
        """How much of the answer there is then, after so many bytes."""
        more = self._socket.recv_into(self._buffer[size:])
        if not more:
            raise RuntimeError(f"{verb}: the line was cut")
        return size + more


def _is_whole(answer: bytes) -> bool:
    """Whether the answer has arrived to its end, be it of a known length or in chunks (Go's, where it is long)."""
    end = answer.find(_HEAD_ENDS)
    if end < 0:
        return False
    head = answer[:end].lower()
    _, known, rest = head.partition(b"content-length:")
    if known:
        return len(answer) >= end + len(_HEAD_ENDS) + int(rest.partition(b"\r\n")[0])
    return answer.endswith(_CHUNKS_END)
