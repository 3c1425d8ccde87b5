"""A PostgreSQL server of its own for the time of a test, if the machine has one."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.consumers.required import lacking

# Where Debian keeps the programs of each release, which are not on the PATH.
DEBIAN = Path("/usr/lib/postgresql")
SECONDS = 60


def programs() -> Path:
    """Return the folder of the server's programs; skip without one."""
    found = shutil.which("initdb")
    if found:
        return Path(found).parent
    releases = sorted(DEBIAN.glob("*/bin/initdb"))
    if not releases:
        lacking("A PostgreSQL server")
    return releases[-1].parent


@contextmanager
def server() -> Iterator[str]:
    """Run a server that only this machine's sockets reach; give its connection string.

    It is not to run as root; root lets the user `nobody` run it.
    """
    folder = programs()
    owner = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
    with TemporaryDirectory(prefix="hb-pg-") as place:
        if owner is not None:
            os.chown(place, owner.pw_uid, owner.pw_gid)

        def run(*words: str) -> None:
            subprocess.run(
                [folder / words[0], *words[1:]],
                check=True,
                timeout=SECONDS,
                cwd=place,
                stdout=subprocess.DEVNULL,
                user=None if owner is None else owner.pw_uid,
                group=None if owner is None else owner.pw_gid,
                extra_groups=None if owner is None else [],
                env={"PATH": os.defpath, "LC_ALL": "C.UTF-8"},
            )

        data = f"{place}/data"
        run(*("initdb", "--pgdata", data, "--username", "test"), "--no-sync")
        options = f"-c listen_addresses='' -c unix_socket_directories='{place}'"
        control = ("pg_ctl", "--pgdata", data, "--wait", "--silent")
        run(*control, "start", "--log", f"{place}/log", "--options", f"{options} -F")
        try:
            yield f"host={place} user=test dbname=postgres"
        finally:
            run(*control, "stop", "--mode", "immediate")
