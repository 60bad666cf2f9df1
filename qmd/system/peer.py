"""
Find the user at the other end of a TCP connection within this machine.

Linux knows the user of each socket. It answers a netlink request for one socket (sock_diag(7)), and
lists all sockets in ``/proc/net/tcp`` and ``tcp6``. Other systems have no such interface.

A user id is valid only while the socket is open. The kernel lists a closed socket under user 0, so
a stranger who sends a request and closes the connection would appear to be root.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

MAX_TABLE_BYTES = 16 * 1024 * 1024
"""The most bytes of a table in ``/proc`` to read for one connection: about 110,000 sockets."""

_TABLE = Path("/proc/net")

_SOCK_DIAG = 4  # NETLINK_SOCK_DIAG
_BY_FAMILY = 20  # SOCK_DIAG_BY_FAMILY
_REQUEST = 1  # NLM_F_REQUEST
_NO_COOKIE = 0xFFFFFFFF  # INET_DIAG_NOCOOKIE: match any cookie
_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence number, port id
_MESSAGE_BYTES = 72  # size of inet_diag_msg, which ends with the user id and the inode

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


_Lookup = Callable[[_SocketAddress, _SocketAddress], "_SocketEntry | None"]
"""Finds a socket by its local and its remote address. May raise OSError."""


class Peers:
    """Finds the users of the clients of accepted connections. Not thread-safe."""

    def __init__(self, lookup: _Lookup, netlink: _Netlink | None = None) -> None:
        self._lookup = lookup
        self._netlink = netlink
        self._unmapped = _unmapped_uid()

    @classmethod
    def open(cls, family: int = socket.AF_INET) -> Peers | None:
        """Choose a way that works for a test connection; None if this system has none."""
        if sys.platform != "linux":
            return None
        for create in (_Netlink.peers, lambda: cls(_in_tables)):
            try:
                peers = create()
            except OSError:
                continue
            if _finds_this_user(peers, family):
                return peers
            peers.close()
        return None

    def uid(self, connection: socket.socket) -> int | None:
        """
        The id of the user whose process has the other end of an accepted connection.

        None if that is unknown: the client has closed the connection already, or is on another
        machine, or the user has no id in the user namespace of this process.
        """
        try:
            client = _address(connection.getpeername())
            entry = self._lookup(client, _address(connection.getsockname()))
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

    def close(self) -> None:
        if self._netlink is not None:
            self._netlink.close()


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


# --- one socket, by netlink -----------------------------------------------------------


class _Netlink:
    """Asks the kernel for one socket. This takes some microseconds, for any number of sockets."""

    def __init__(self) -> None:
        """Raises OSError if this system does not support it."""
        assert sys.platform == "linux"
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _SOCK_DIAG)
        self._sequence = 0
        # A client may bind its socket to the loopback interface, which is then part of the key.
        self._interfaces = [0]
        with suppress(OSError):
            self._interfaces.append(socket.if_nametoindex("lo"))

    @classmethod
    def peers(cls) -> Peers:
        netlink = cls()
        return Peers(netlink.find, netlink)

    def find(self, client: _SocketAddress, server: _SocketAddress) -> _SocketEntry | None:
        for interface in self._interfaces:
            entry = self._ask(client, server, interface)
            if entry is not None:
                return entry
        return None

    def close(self) -> None:
        self._socket.close()

    def _ask(
        self, client: _SocketAddress, server: _SocketAddress, interface: int
    ) -> _SocketEntry | None:
        family = socket.AF_INET if client.ip.version == 4 else socket.AF_INET6
        self._sequence = (self._sequence + 1) & 0xFFFFFFFF
        request = (
            struct.pack("=BBBxI", family, socket.IPPROTO_TCP, 0, 0xFFFFFFFF)
            + struct.pack("!HH", client.port, server.port)
            + client.ip.packed.ljust(16, b"\0")
            + server.ip.packed.ljust(16, b"\0")
            + struct.pack("=III", interface, _NO_COOKIE, _NO_COOKIE)
        )
        header = _HEADER.pack(_HEADER.size + len(request), _BY_FAMILY, _REQUEST, self._sequence, 0)
        self._socket.sendto(header + request, (0, 0))
        while True:
            # The kernel answers before sendto returns, so this never has to wait.
            reply, (sender, _) = self._socket.recvfrom(8192, socket.MSG_DONTWAIT)
            if sender != 0 or len(reply) < _HEADER.size:
                continue
            _, message_type, _, sequence, _ = _HEADER.unpack_from(reply)
            if sequence != self._sequence:
                continue  # the answer to an abandoned request
            body = reply[_HEADER.size :]
            if message_type != _BY_FAMILY or len(body) < _MESSAGE_BYTES:
                return None  # an error: there is no such socket
            uid, inode = struct.unpack_from("=II", body, _MESSAGE_BYTES - 8)
            return _SocketEntry(body[1], uid, inode)


# --- all sockets, as text -------------------------------------------------------------


def _in_tables(client: _SocketAddress, server: _SocketAddress) -> _SocketEntry | None:
    """Find a socket in ``/proc/net``, for kernels without netlink for sockets (such as gVisor)."""
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
