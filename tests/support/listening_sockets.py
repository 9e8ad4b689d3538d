"""Listening sockets of processes, found in /proc."""

import ipaddress
import os
import socket
import struct
from dataclasses import dataclass
from pathlib import Path

TCP_LISTEN = "0A"
UNIX_LISTENS = 0x10000  # __SO_ACCEPTCON, in the kernel's column of flags


@dataclass(frozen=True)
class ListeningSocket:
    pid: int
    family: socket.AddressFamily
    kind: socket.SocketKind
    address: tuple | str | bytes  # for connect(), with a specific address in place of "all"

    def is_on_this_host_only(self):
        return self.family == socket.AF_UNIX or ipaddress.ip_address(self.address[0]).is_loopback

    def connect(self, seconds=5.0):
        """Connects to the socket. Raises OSError."""
        address = self.address
        if self.family != socket.AF_UNIX and ipaddress.ip_address(address[0]).is_unspecified:
            address = ("127.0.0.1" if self.family == socket.AF_INET else "::1", address[1])
        connection = socket.socket(self.family, self.kind)
        connection.settimeout(seconds)
        try:
            connection.connect(address)
        except OSError:
            connection.close()
            raise
        return connection


def lines_of(path):
    try:
        return Path(path).read_text(errors="surrogateescape").splitlines()[1:]
    except OSError:
        return []  # the process has ended


def sockets_held_by(pid):
    """Inode numbers."""
    found = set()
    try:
        for entry in os.scandir(f"/proc/{pid}/fd"):
            try:
                target = os.readlink(entry.path)
            except OSError:
                continue
            if target.startswith("socket:["):
                found.add(int(target[8:-1]))
    except OSError:
        pass
    return found


def address_of(text):
    """Parses a text such as "0100007F:1F90": words of the address in host byte order, the port as a number."""
    words, port = text.split(":")
    packed = b"".join(struct.pack("=I", int(words[i : i + 8], 16)) for i in range(0, len(words), 8))
    return str(ipaddress.ip_address(packed)), int(port, 16)


def listening_sockets(pids):
    """The listening sockets of these processes: TCP, and UNIX with a path or an abstract name. A socket that several
    processes hold is listed once."""
    found = {}  # by inode

    def add(pid, inode, *what):
        if inode in held:
            found.setdefault(inode, ListeningSocket(pid, *what))

    for pid in pids:
        held = sockets_held_by(pid)
        for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
            for fields in map(str.split, lines_of(f"/proc/{pid}/net/{table}")):
                if fields[3] == TCP_LISTEN:
                    add(pid, int(fields[9]), family, socket.SOCK_STREAM, address_of(fields[1]))
        for line in lines_of(f"/proc/{pid}/net/unix"):
            fields = line.split(maxsplit=7)
            if int(fields[3], 16) & UNIX_LISTENS:
                name = fields[7] if len(fields) > 7 else ""
                address = b"\0" + os.fsencode(name[1:]) if name.startswith("@") else name
                add(pid, int(fields[6]), socket.AF_UNIX, socket.SocketKind(int(fields[4], 16)), address)
    return list(found.values())
