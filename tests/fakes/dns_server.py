"""A name server of a few lines: A records that a test changes while it runs, as a cluster does."""

from __future__ import annotations

import ipaddress
import socket
import struct
import threading
from collections.abc import Iterable
from types import TracebackType

_HEADER = struct.Struct("!6H")
_A, _IN = 1, 1
_ANSWER_FLAGS = 0x8580  # a response, authoritative, recursion asked and given
_NAME_OF_QUESTION = 0xC00C  # a pointer to the name that the question holds


class DnsServer:
    """`with DnsServer() as dns:` answers on a free UDP port; TTL 0, nothing but A records."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self._records: dict[str, tuple[str, ...]] = {}
        self._thread = threading.Thread(target=self._serve, name="dns", daemon=True)

    def put(self, name: str, addresses: Iterable[str]) -> None:
        """From now on `name` has these addresses."""
        self._records[name] = tuple(addresses)

    def target(self, name: str, port: int) -> str:
        """A gRPC target that is resolved here."""
        return f"dns://{self.address}/{name}:{port}"

    def _serve(self) -> None:
        while True:
            query, sender = self._socket.recvfrom(4096)
            if not query:
                return
            self._socket.sendto(self._answer(query), sender)

    def _answer(self, query: bytes) -> bytes:
        name, end = _read_name(query, _HEADER.size)
        kind, _ = struct.unpack_from("!2H", query, end)
        found = self._records.get(name, ()) if kind == _A else ()
        (query_id,) = struct.unpack_from("!H", query)
        head = _HEADER.pack(query_id, _ANSWER_FLAGS, 1, len(found), 0, 0)
        return head + query[_HEADER.size : end + 4] + b"".join(map(_record, found))

    def __enter__(self) -> DnsServer:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        host, port = self._socket.getsockname()
        self._socket.sendto(b"", (host, port))
        self._thread.join()
        self._socket.close()


def _read_name(query: bytes, at: int) -> tuple[str, int]:
    labels = []
    while (length := query[at]) != 0:
        labels.append(query[at + 1 : at + 1 + length].decode("ascii").lower())
        at += 1 + length
    return ".".join(labels), at + 1


def _record(address: str) -> bytes:
    packed = ipaddress.IPv4Address(address).packed
    return struct.pack("!3HIH", _NAME_OF_QUESTION, _A, _IN, 0, len(packed)) + packed
