"""
Find the user at the other end of a TCP connection within this machine.

Linux knows the user of each socket, and lists all sockets in ``/proc/net/tcp`` and ``tcp6``. Other
systems have no such interface. (Netlink, sock_diag(7), tells of one socket in some microseconds,
where reading a table of 800 sockets takes two milliseconds; but not every kernel has it.)

A user id is valid only while the socket is open. The kernel lists a closed socket under user 0, so
a stranger who sends a request and closes the connection would appear to be root.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

#: The most bytes of a table in ``/proc`` to read for one connection: about 110,000 sockets.
MAX_TABLE_BYTES = 16 * 1024 * 1024

_TABLE = Path("/proc/net")

_ESTABLISHED, _FIN_WAIT1, _FIN_WAIT2, _CLOSE_WAIT = 1, 4, 5, 8
_CLIENT_STATES = frozenset({_ESTABLISHED, _FIN_WAIT1, _FIN_WAIT2})
_SERVER_STATES = frozenset({_ESTABLISHED, _CLOSE_WAIT})


class _SocketAddress(NamedTuple):
    ip: ipaddress.IPv4Address | ipaddress.IPv6Address
    port: int


class _SocketEntry(NamedTuple):
    """A socket in the kernel's list. Its inode is 0 if no process has the socket open."""

    state: int
    uid: int
    inode: int


class Peers:
    """Finds the users of the clients of accepted connections."""

    def __init__(self) -> None:
        self._unmapped = _unmapped_uid()

    @classmethod
    def open(cls, family: int = socket.AF_INET) -> Peers | None:
        """None if this system does not tell: a test connection is tried."""
        if sys.platform != "linux":
            return None
        peers = cls()
        return peers if _finds_this_user(peers, family) else None

    def uid(self, connection: socket.socket) -> int | None:
        """
        The id of the user whose process has the other end of an accepted connection.

        None if that is unknown: the client has closed the connection already, or is on another
        machine, or the user has no id in the user namespace of this process.
        """
        try:
            client = _address(connection.getpeername())
            entry = _in_tables(client, _address(connection.getsockname()))
            # The state of this end is read last: as long as it is open, no other socket can have
            # had the client's address.
            server_state = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
        except (OSError, ValueError):
            return None
        if entry is None or entry.inode == 0 or entry.state not in _CLIENT_STATES:
            return None
        if server_state not in _SERVER_STATES or entry.uid == self._unmapped:
            return None
        return entry.uid


def _finds_this_user(peers: Peers, family: int) -> bool:
    """Whether ``peers`` gives this process's user id for a connection of this process to itself."""
    loopback = "::1" if family == socket.AF_INET6 else "127.0.0.1"
    with suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.bind((loopback, 0))
        listener.listen(1)
        with socket.create_connection(listener.getsockname()[:2], timeout=1):
            accepted, _ = listener.accept()
            with accepted:
                return peers.uid(accepted) == os.geteuid()
    return False


def _address(name: tuple[str, int]) -> _SocketAddress:
    """Parse the result of ``getpeername``. Raises ValueError."""
    ip = ipaddress.ip_address(name[0].partition("%")[0])
    mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
    return _SocketAddress(mapped or ip, name[1])


def _unmapped_uid() -> int | None:
    """The id that stands for users unknown to this user namespace; None if it knows all users."""
    try:
        if Path("/proc/self/uid_map").read_text("ascii").split() == ["0", "0", "4294967295"]:
            return None
        return int(Path("/proc/sys/kernel/overflowuid").read_text("ascii"))
    except (OSError, ValueError):
        return None


def _in_tables(client: _SocketAddress, server: _SocketAddress) -> _SocketEntry | None:
    """Find a socket by its local and its remote address. May raise OSError."""
    if client.ip.version == 6:
        tables = [("tcp6", b"")]
    else:  # an IPv6 socket can have an IPv4 connection
        tables = [("tcp", b""), ("tcp6", b"\0" * 10 + b"\xff\xff")]
    for name, prefix in tables:
        entry = _in_table(_TABLE / name, _shown(client, prefix), _shown(server, prefix))
        if entry is not None:
            return entry
    return None


def _shown(address: _SocketAddress, prefix: bytes) -> bytes:
    """Write an address as the tables do: 32 bits at a time, in the byte order of this machine."""
    packed = prefix + address.ip.packed
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return b"%s:%04X" % (b"".join(b"%08X" % word for word in words), address.port)


def _in_table(table: Path, client: bytes, server: bytes) -> _SocketEntry | None:
    """Find the socket with these local and remote addresses in one table."""
    key = b" %s %s " % (client, server)
    try:
        file = table.open("rb", buffering=0)
    except FileNotFoundError:  # a kernel without IPv6
        return None
    rest = b""  # an unfinished line
    size = 0
    with file:
        while size < MAX_TABLE_BYTES and (data := file.read(65536)):
            size += len(data)
            lines = rest + data
            start = lines.find(key)
            end = lines.find(b"\n", start) if start >= 0 else -1
            if end >= 0:
                return _entry(lines[start:end])
            rest = lines[lines.rfind(b"\n") + 1 :] if start < 0 else lines[start:]
    return None


def _entry(line: bytes) -> _SocketEntry | None:
    """Parse a line of a table, from its addresses on; None if it is malformed."""
    fields = line.split()
    try:
        return _SocketEntry(int(fields[2], 16), int(fields[6]), int(fields[8]))
    except (ValueError, IndexError):
        return None
