"""
Find the user who holds the other end of a TCP connection within this machine.

Linux knows who opened each socket: it answers a netlink request for one socket (sock_diag(7)),
and lists all sockets in ``/proc/net/tcp`` and ``tcp6``. Other systems have no such interface.

A user id counts only while its socket is open. The kernel shows the sockets of processes
that have closed them under user 0, so a stranger who sends a request and leaves would be taken
for root.
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
"""How much of a table in ``/proc`` is read for one connection: about 110,000 sockets."""

_TABLE = Path("/proc/net")

_SOCK_DIAG = 4  # NETLINK_SOCK_DIAG
_BY_FAMILY = 20  # SOCK_DIAG_BY_FAMILY
_REQUEST = 1  # NLM_F_REQUEST
_NO_COOKIE = 0xFFFFFFFF  # INET_DIAG_NOCOOKIE: whatever its cookie
_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence number, port id
_MESSAGE_BYTES = 72  # inet_diag_msg, which ends in user id and inode

_ESTABLISHED, _FIN_WAIT1, _FIN_WAIT2, _CLOSE_WAIT = 1, 4, 5, 8
_CLIENT_STATES = frozenset({_ESTABLISHED, _FIN_WAIT1, _FIN_WAIT2})
_SERVER_STATES = frozenset({_ESTABLISHED, _CLOSE_WAIT})


class _SocketAddress(NamedTuple):
    ip: ipaddress.IPv4Address | ipaddress.IPv6Address
    port: int


class _SocketEntry(NamedTuple):
    """What the kernel says of a socket; inode 0: no process holds it any more."""

    state: int
    uid: int
    inode: int


_Lookup = Callable[[_SocketAddress, _SocketAddress], "_SocketEntry | None"]
"""Finds a socket by its own address and the one it is connected to. May raise OSError."""


class Peers:
    """Tells the users behind accepted connections. Not for several threads at once."""

    def __init__(self, lookup: _Lookup, netlink: _Netlink | None = None) -> None:
        self._lookup = lookup
        self._netlink = netlink
        self._unmapped = _unmapped_uid()

    @classmethod
    def open(cls, family: int = socket.AF_INET) -> Peers | None:
        """None where this system does not tell; tried on a connection of our own."""
        if sys.platform != "linux":
            return None
        for make in (_Netlink.peers, lambda: cls(_in_tables)):
            try:
                peers = make()
            except OSError:
                continue
            if _is_right(peers, family):
                return peers
            peers.close()
        return None

    def uid(self, connection: socket.socket) -> int | None:
        """
        The user whose process holds the other end of an accepted connection.

        None if that cannot be said: the client has closed its end already, or sits on another
        machine, or its user has no number in our user namespace.
        """
        try:
            client = _address(connection.getpeername())
            entry = self._lookup(client, _address(connection.getsockname()))
            # Our end is asked last: while it is open, nobody else can have the client's address.
            ours = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
        except (OSError, ValueError):
            return None
        if entry is None or entry.inode == 0 or entry.state not in _CLIENT_STATES:
            return None
        if ours not in _SERVER_STATES or entry.uid == self._unmapped:
            return None
        return entry.uid

    def close(self) -> None:
        if self._netlink is not None:
            self._netlink.close()


def _is_right(peers: Peers, family: int) -> bool:
    """Whether it tells our own user id of a connection that we open ourselves."""
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
    """Of what ``getpeername`` gives. Raises ValueError."""
    ip = ipaddress.ip_address(name[0].partition("%")[0])
    mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
    return _SocketAddress(mapped or ip, name[1])


def _unmapped_uid() -> int | None:
    """What stands for every user that our user namespace does not know; None: it knows all."""
    try:
        if Path("/proc/self/uid_map").read_text("ascii").split() == ["0", "0", "4294967295"]:
            return None
        return int(Path("/proc/sys/kernel/overflowuid").read_text("ascii"))
    except (OSError, ValueError):
        return None


# --- one socket, by netlink -----------------------------------------------------------


class _Netlink:
    """Asks the kernel for one socket: some microseconds, however many there are."""

    def __init__(self) -> None:
        """Raises OSError: not on this system."""
        assert sys.platform == "linux"
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _SOCK_DIAG)
        self._sequence = 0
        # A client may have bound its socket to the interface, which is then part of the key.
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
            # The kernel has answered before sendto returns, so that nobody waits here.
            reply, (sender, _) = self._socket.recvfrom(8192, socket.MSG_DONTWAIT)
            if sender != 0 or len(reply) < _HEADER.size:
                continue
            _, kind, _, sequence, _ = _HEADER.unpack_from(reply)
            if sequence != self._sequence:
                continue  # to a request that was given up
            body = reply[_HEADER.size :]
            if kind != _BY_FAMILY or len(body) < _MESSAGE_BYTES:
                return None  # an error: there is no such socket
            uid, inode = struct.unpack_from("=II", body, _MESSAGE_BYTES - 8)
            return _SocketEntry(body[1], uid, inode)


# --- all sockets, as text -------------------------------------------------------------


def _in_tables(client: _SocketAddress, server: _SocketAddress) -> _SocketEntry | None:
    """The same from ``/proc/net``, where the kernel lacks netlink for it (gVisor, for one)."""
    if client.ip.version == 6:
        tables = [("tcp6", b"")]
    else:  # a socket of IPv6 can speak IPv4
        tables = [("tcp", b""), ("tcp6", b"\0" * 10 + b"\xff\xff")]
    for name, prefix in tables:
        entry = _in_table(_TABLE / name, _shown(client, prefix), _shown(server, prefix))
        if entry is not None:
            return entry
    return None


def _shown(address: _SocketAddress, prefix: bytes) -> bytes:
    """As the tables write an address: 32 bits at a time, in the byte order of this machine."""
    packed = prefix + address.ip.packed
    words = struct.unpack(f"={len(packed) // 4}I", packed)
    return b"%s:%04X" % (b"".join(b"%08X" % word for word in words), address.port)


def _in_table(table: Path, client: bytes, server: bytes) -> _SocketEntry | None:
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
    """Of a line from its addresses on; None if it is none."""
    fields = line.split()
    try:
        return _SocketEntry(int(fields[2], 16), int(fields[6]), int(fields[8]))
    except (ValueError, IndexError):
        return None
