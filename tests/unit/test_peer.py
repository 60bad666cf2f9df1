"""Which user holds the other end of a connection: real sockets."""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import child

from qmd.system import peer
from qmd.system.peer import Peers

if sys.platform != "linux":
    pytest.skip("only Linux tells the user of a peer", allow_module_level=True)


@pytest.fixture
def peers() -> Peers:
    return Peers()


class Connection(ExitStack):
    """Both ends of a connection within this machine."""

    def __init__(self, host: str, *, client: socket.socket | None = None) -> None:
        super().__init__()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            listener = self.enter_context(socket.create_server((host, 0), family=family))
        except OSError as error:
            pytest.skip(f"NOT TESTED: no {host} here: {error}")
        self.client = self.enter_context(client or socket.socket(family))
        target = f"::ffff:{host}" if self.client.family != family else host
        self.client.connect((target, listener.getsockname()[1]))
        self.accepted = self.enter_context(listener.accept()[0])


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.10", "::1"])
def test_our_own_connection_is_ours(peers: Peers, host: str) -> None:
    with Connection(host) as connection:
        assert peers.uid(connection.accepted) == os.geteuid()


def test_a_socket_of_ipv6_that_speaks_ipv4_is_found(peers: Peers) -> None:
    with Connection("127.0.0.1", client=socket.socket(socket.AF_INET6)) as connection:
        assert peers.uid(connection.accepted) == os.geteuid()


def test_a_socket_bound_to_the_interface_is_found(peers: Peers) -> None:
    client = socket.socket(socket.AF_INET)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"lo\0")
    with Connection("127.0.0.1", client=client) as connection:
        assert peers.uid(connection.accepted) == os.geteuid()


def test_a_client_that_has_said_all_and_waits_for_the_answer_is_found(peers: Peers) -> None:
    with Connection("127.0.0.1") as connection:
        connection.client.shutdown(socket.SHUT_WR)
        assert peers.uid(connection.accepted) == os.geteuid()


@pytest.mark.parametrize("reset", [False, True])
def test_a_client_that_has_left_is_nobody_and_not_root(peers: Peers, reset: bool) -> None:
    with Connection("127.0.0.1") as connection:
        if reset:
            linger = struct.pack("ii", 1, 0)
            connection.client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        connection.client.sendall(b"a request")
        connection.client.close()
        assert peers.uid(connection.accepted) is None


CONNECT = """
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 60)
connection.recv(1)
"""


def test_another_users_connection_is_theirs(peers: Peers) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(child.WAIT_S)
        port = listener.getsockname()[1]
        process = child.start_as_user(child.OTHER_USER, CONNECT, port)
        accepted, _ = listener.accept()
        with accepted:
            assert peers.uid(accepted) == child.OTHER_USER
        child.finish(process)


def test_looking_leaves_no_descriptor_open() -> None:
    def count() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    with Connection("127.0.0.1") as connection:
        before = count()
        for _ in range(20):
            found = Peers.open()
            assert found is not None
            assert found.uid(connection.accepted) == os.geteuid()
        assert count() == before


# --- the tables -----------------------------------------------------------------------

addresses = st.builds(
    peer._SocketAddress,
    st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)),
    st.integers(0, 65535),
)


def line(
    number: int, ours: peer._SocketAddress, theirs: peer._SocketAddress, entry: peer._SocketEntry
) -> bytes:
    shown = (peer._shown(each, b"") for each in (ours, theirs))
    return b"%4d: %s %s %02X 00000000:00000000 00:00000000 00000000 %5d        0 %d 1 x\n" % (
        number, *shown, entry.state, entry.uid, entry.inode
    )  # fmt: skip


@given(addresses, addresses, st.integers(1, 12), st.integers(0, 2**32 - 2), st.integers(0, 2**32))
def test_what_a_table_says_of_a_socket_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    ours: peer._SocketAddress,
    theirs: peer._SocketAddress,
    state: int,
    uid: int,
    inode: int,
) -> None:
    table = tmp_path_factory.getbasetemp() / "table"
    entry = peer._SocketEntry(state, uid, inode)
    table.write_bytes(b"  sl  local_address\n" + line(7, ours, theirs, entry))
    key = peer._shown(ours, b""), peer._shown(theirs, b"")
    assert peer._in_table(table, *key) == entry
    if ours != theirs:
        assert peer._in_table(table, key[1], key[0]) is None


@given(st.binary(max_size=300))
def test_a_table_of_anything_is_read_to_its_end(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    table = tmp_path_factory.getbasetemp() / "garbage"
    here = peer._SocketAddress(ipaddress.ip_address("127.0.0.1"), 1)
    key = peer._shown(here, b"")
    table.write_bytes(data)
    assert peer._in_table(table, key, key) is None
    table.write_bytes(b"1: %s %s %s\n" % (key, key, data.replace(b"\n", b"")))
    peer._in_table(table, key, key)


@pytest.mark.nightly
def test_a_table_is_read_in_pieces_up_to_a_limit(tmp_path: Path) -> None:
    table = tmp_path / "tcp"
    server = peer._SocketAddress(ipaddress.ip_address("127.0.0.1"), 18765)
    entry = peer._SocketEntry(1, 1000, 4711)
    clients = [
        peer._SocketAddress(ipaddress.ip_address(0x7F000001 + number // 60000), number % 60000)
        for number in range(180_000)
    ]
    table.write_bytes(b"".join(line(0, client, server, entry) for client in clients))
    assert table.stat().st_size > peer.MAX_TABLE_BYTES
    for number, client in enumerate(clients):
        if number % 997 == 0 and number < 60_000:
            key = peer._shown(client, b""), peer._shown(server, b"")
            assert peer._in_table(table, *key) == entry
    last = peer._shown(clients[-1], b""), peer._shown(server, b"")
    assert peer._in_table(table, *last) is None
