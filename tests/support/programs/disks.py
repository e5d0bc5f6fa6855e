"""Disks of a test's own: one whose power can be cut, and one that can be filled. Both need root, and say so."""

from __future__ import annotations

import ctypes
import fcntl
import os
import random
import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SHUTDOWN = 0x8004587D
"""The ioctl by which ext4 ends at once: `_IOR('X', 125, __u32)`."""
WITHOUT_FLUSHING = 2
BLOCK = 4096
SOME_FILES, SOME_BLOCKS = 40, 4
WRITE_BACK = 7
"""Of sync_file_range(2): wait, write, wait."""
libc = ctypes.CDLL(None, use_errno=True)


def run(*command: str | Path) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


def mount_first(*arguments: str | Path) -> None:
    """Mount something for the first time; skip the test where that is not permitted."""
    done = subprocess.run(["mount", *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")


def need_mounts(*programs: str) -> None:
    """Skip the test where nothing can be mounted."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a disk")
    missing = [each for each in programs if not shutil.which(each, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed")


class PowerDisk:
    """An ext4 in a file. Its power can be cut: whatever the kernel has not written to the file by then is gone."""

    def __init__(self, image: Path, place: Path) -> None:
        self.place, self.mounted = place, ("-o", "loop", image, place)

    def mount(self) -> None:
        """Switch the disk on; ext4 replays its journal."""
        run("mount", *self.mounted)

    def unmount(self) -> None:
        """Switch the disk off; nobody may have a file open."""
        run("umount", self.place)

    def write_all(self) -> None:
        """Write what the kernel still has, as it does by itself after half a minute."""
        run("sync", "--file-system", self.place)

    def write_some(self, draw: random.Random) -> None:
        """Write some of what nobody has synced, as a disk may in any order before its power fails."""
        # Half a page of PostgreSQL is one block: that is how pages tear.
        files = sorted(path for path in self.place.rglob("*") if path.is_file() and path.stat().st_size)
        for path in draw.sample(files, min(SOME_FILES, len(files))):
            descriptor, size = os.open(path, os.O_RDONLY), path.stat().st_size
            for _ in range(SOME_BLOCKS):
                offset = draw.randrange(size) // BLOCK * BLOCK
                libc.sync_file_range(descriptor, ctypes.c_int64(offset), ctypes.c_int64(BLOCK), WRITE_BACK)
            os.close(descriptor)

    def cut(self) -> None:
        """Cut the power: from now on every access fails, and nothing more is written."""
        descriptor = os.open(self.place, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, SHUTDOWN, struct.pack("I", WITHOUT_FLUSHING))
        finally:
            os.close(descriptor)


@contextmanager
def power_disk(folder: Path, megabytes: int = 400) -> Iterator[PowerDisk]:
    """Make a disk whose power can be cut."""
    need_mounts("mkfs.ext4", "mount")
    image, place = folder / "disk.img", folder / "disk"
    place.mkdir()
    with image.open("wb") as file:
        file.truncate(megabytes << 20)
    run("mkfs.ext4", "-q", "-F", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0", image)
    disk = PowerDisk(image, place)
    mount_first(*disk.mounted)
    try:
        yield disk
    finally:
        disk.unmount()


class SmallDisk:
    """A file system in memory that is as large as it is told to be."""

    def __init__(self, place: Path, megabytes: int) -> None:
        self.place, self._megabytes = place, megabytes

    def fill(self) -> None:
        """Leave no room at all; whoever writes meanwhile may take what was just counted."""
        while not self._resize(f"{self._used()}k"):
            continue

    def free(self) -> None:
        """Give the room back."""
        assert self._resize(f"{self._megabytes}m")

    def _used(self) -> int:
        state = os.statvfs(self.place)
        return (state.f_blocks - state.f_bfree) * state.f_frsize // 1024

    def _resize(self, size: str) -> bool:
        command = ["mount", "-o", f"remount,size={size}", self.place]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[SmallDisk]:
    """Make a disk that can be filled."""
    need_mounts("mount")
    folder.mkdir()
    mount_first("-t", "tmpfs", "-o", f"size={megabytes}m,mode=755", "tmpfs", folder)
    try:
        yield SmallDisk(folder, megabytes)
    finally:
        run("umount", folder)
