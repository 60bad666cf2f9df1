"""
Every network call and every file that a process and its children make, as strace sees them.
"""

from __future__ import annotations

import functools
import ipaddress
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.support.live import until

#: Calls that make a file, or may; besides those of the network.
_FILE_CALLS = "open,openat,creat,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,symlink"
#: Calls that send; others tell addresses that the machine has, or where a packet came from.
_SENDING = re.compile(r"^\d+ +(connect|sendto|sendmsg|sendmmsg)\(")
_ADDRESS = re.compile(r'inet_addr\("([^"]*)"\)|inet_pton\(AF_INET6, "([^"]*)"')
_PORT = re.compile(r"sin6?_port=htons\((\d+)\)")
_UNIX = re.compile(r'sa_family=AF_UNIX, sun_path=@?"([^"]*)"')
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
#: Local sockets behind which somebody else looks names up on the network. Not nscd's, which the C
#: library also asks for the addresses of this machine.
_RESOLVERS = ("systemd/resolve", "io.systemd.Resolve", "avahi")


@functools.cache
def why_not() -> str | None:
    """Why no process can be watched here; None where it can."""
    if sys.platform != "linux":
        return "strace is a program of Linux"
    program = shutil.which("strace")
    if program is None:
        return "strace is not installed (tests/run installs it)"
    done = subprocess.run([program, "-f", "true"], capture_output=True, text=True, check=False)
    if done.returncode:
        return f"strace may watch no process here: {done.stderr.strip()}"
    return None


@dataclass(frozen=True)
class Trace:
    """What was seen of one command, in the file that strace writes."""

    file: Path

    def command(self) -> list[str]:
        """To be put in front of the command; signals and pipes reach it as without."""
        calls = f"trace=network,{_FILE_CALLS}"
        return ["strace", "-D", "-f", "--seccomp-bpf", "-q", "-y", "-s", "4096",
                "-e", "signal=none", "-e", calls, "-o", str(self.file)]  # fmt: skip

    def wait(self, pid: int) -> None:
        """Until all that the process did is in the file; strace writes a moment behind it."""
        # strace fills a number of fewer than five digits up with blanks.
        ended = re.compile(rf"^{pid} +\+\+\+ (exited|killed)", re.MULTILINE)
        until(lambda: ended.search(self._text()), f"the end of {pid} in {self.file}")

    def _text(self) -> str:
        return self.file.read_text(encoding="utf-8", errors="replace")

    def calls_abroad(self) -> list[str]:
        """Calls that send beyond loopback, or to a local service that looks names up."""
        return [line for line in self._text().splitlines() if _goes_abroad(line)]

    def addresses(self) -> list[str]:
        """All internet addresses that occur, for a look at whether anything was seen."""
        return [match[1] or match[2] for match in _ADDRESS.finditer(self._text())]

    def files_made(self) -> set[str]:
        """Files and directories that were made or opened for writing, as the calls name them."""
        made: set[str] = set()
        for line in self._text().splitlines():
            call = line.partition(" ")[2]
            name, _, arguments = call.lstrip().partition("(")
            if " = -1 " in line or name not in _FILE_CALLS.split(","):
                continue
            if name.startswith("open") and not re.search(r"O_CREAT|O_WRONLY|O_RDWR", arguments):
                continue
            result = re.search(r" = \d+<(.*)>$", line)
            paths = [result[1]] if result else _QUOTED.findall(arguments)
            made.add(paths[-1].encode("latin-1", "replace").decode("unicode_escape"))
        return made


def _goes_abroad(line: str) -> bool:
    if not _SENDING.match(line):
        return False
    unix = _UNIX.search(line)
    if unix is not None:
        return any(resolver in unix[1] for resolver in _RESOLVERS)
    for match in _ADDRESS.finditer(line):
        address = ipaddress.ip_address((match[1] or match[2]).partition("%")[0])
        mapped = getattr(address, "ipv4_mapped", None) or address
        if not mapped.is_loopback:
            return True
    port = _PORT.search(line)
    return port is not None and port[1] == "53"
