"""Roots that machines are booted from: a distribution with its packages, and the same with pytest-ldos installed.

Each is made once and kept below ``LAB_CACHE``, or the user's cache, under a name of all it depends on.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).parents[2]
SUITE: Final = os.environ.get("LAB_SUITE") or platform.freedesktop_os_release()["VERSION_CODENAME"]
"""Name of the distribution: this machine's own, unless another is named."""

CACHE: Final = Path(
    os.environ.get("LAB_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "ldos-lab")
)
PLACE: Final = "srv/pytest-ldos"
"""Place of the checkout on a machine."""

SETTINGS: Final = "ROS2=no\nKERNEL_TRACING=no\nMIN_FREE_GIB=1\n"
ROS2: Final = "srv/ros2"
"""Place of the core of ROS 2 on a machine that has its layer."""

_WHEELS: Final = "srv/wheels"
_PACKAGES: Final = (
    "systemd,systemd-sysv,dbus,dbus-user-session,polkitd,libpam-systemd,sudo,openssh-server,openssh-client,at,cron,tmux,"
    "lttng-tools,liblttng-ust-dev,keyutils,python3,python3-venv,python3-dev,g++,cmake,ninja-build,make,git,curl,"
    "ca-certificates,openssl,util-linux,util-linux-extra,procps,iproute2,stress-ng,passwd"
)
_UBUNTU: Final = 'PRETTY_NAME="{}, taken for Ubuntu 24.04"\nID=ubuntu\nVERSION_ID="24.04"\n'
_FETCH: Final = f"""
import subprocess, sys, tomllib
table = tomllib.load(open("/{PLACE}/pyproject.toml", "rb"))
project = table["project"]
needed = table["build-system"]["requires"] + project["dependencies"] + project["optional-dependencies"]["embedded"]
sys.exit(subprocess.call([sys.executable, "-m", "pip", "download", "--quiet", "--dest", "/{_WHEELS}", *needed]))
"""
_OFFLINE: Final = f"[global]\nno-index = true\nfind-links = /{_WHEELS}\ndisable-pip-version-check = true\n"


def distribution_root() -> Path:
    """A distribution with all packages that the bootstrap asks for, that calls itself Ubuntu 24.04."""
    place = CACHE / f"{SUITE}-{_digest([Path(__file__), CHECKOUT / 'pyproject.toml'])}"
    if not place.exists():
        with _staged(place) as stage:
            _call("mmdebstrap", "--quiet", "--variant=minbase", f"--include={_PACKAGES}", SUITE, str(stage))
            copy_checkout(stage)
            _fetch_wheels(stage)
            _cut_off(stage)
    return place


def installed_layer() -> Path:
    """Layer of the bootstrap's phase for pytest-ldos over that root, kept because building takes minutes."""
    lower = distribution_root()
    sources = [CHECKOUT / name for name in ("pyproject.toml", "CMakeLists.txt", "LICENSE", "README.md")]
    sources += [path for path in (CHECKOUT / "pytest_ldos").rglob("*") if path.suffix not in {".pyc", ".so"}]
    sources += [CHECKOUT / "lab/phases/40-ldos", *(CHECKOUT / "lab/lib").iterdir()]
    place = CACHE / f"{lower.name}-{_digest(sources)}"
    if not place.exists():
        with _staged(place) as stage, overlay(stage, [lower], place.with_suffix(".root")) as root:
            copy_checkout(root)
            (root / "etc/ldos-lab").mkdir()
            (root / "etc/ldos-lab/lab.conf").write_text(SETTINGS)
            _in(root, f"/{PLACE}/lab/bootstrap", "--only", "ldos")
    return place


def ros2_layer() -> Path:
    """Layer with the core of ROS 2, from wheels, over that root."""
    lower = distribution_root()
    sources = [CHECKOUT / ".ci/rcl", CHECKOUT / "tests/integration/rcl/tracetools.c"]
    place = CACHE / f"{lower.name}-ros2-{_digest(sources)}"
    if not place.exists():
        with _staged(place) as stage, overlay(stage, [lower], place.with_suffix(".root")) as root:
            copy_checkout(root)
            install = "PIP_CONFIG_FILE=/dev/null sh .ci/rcl /usr/bin/python3"
            _in(root, "sh", "-euc", f"cd /{PLACE} && {install} /{ROS2} && test -e /{ROS2}/.ready")
    return place


def copy_checkout(root: Path) -> None:
    """The files that git knows or would add, as they are now."""
    shutil.rmtree(root / PLACE, ignore_errors=True)
    listed = subprocess.run(
        ["git", "-C", str(CHECKOUT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (CHECKOUT / name).is_file():
            (root / PLACE / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(CHECKOUT / name, root / PLACE / name)


@contextmanager
def overlay(upper: Path, lower: list[Path], root: Path) -> Iterator[Path]:
    """The lower folders with the upper one over them, which takes what is written."""
    work = root.with_suffix(".work")
    for folder in (upper, work, root):
        folder.mkdir(parents=True, exist_ok=True)
    layers = ":".join(map(str, lower))
    _call("mount", "-t", "overlay", "overlay", "-o", f"lowerdir={layers},upperdir={upper},workdir={work}", str(root))
    try:
        yield root
    finally:
        _call("umount", str(root))
        root.rmdir()
        shutil.rmtree(work)


def _digest(files: list[Path]) -> str:
    digests = [hashlib.sha256(file.read_bytes()).digest() for file in sorted(files) if file.is_file()]
    return hashlib.sha256(b"".join(digests)).hexdigest()[:12]


@contextmanager
def _staged(place: Path) -> Iterator[Path]:
    """A folder that is at its place only when it is whole."""
    stage = place.with_suffix(".new")
    shutil.rmtree(stage, ignore_errors=True)
    stage.mkdir(parents=True)
    yield stage
    stage.rename(place)


def _fetch_wheels(root: Path) -> None:
    (root / _WHEELS).mkdir(parents=True)
    _in(root, "sh", "-euc", f"python3 -m venv /tmp/fetch && /tmp/fetch/bin/python -c '{_FETCH}' && rm -r /tmp/fetch")


def _cut_off(root: Path) -> None:
    """Makes the bootstrap do without a network: apt has one archive, which is empty, and pip has the wheels."""
    name = (root / "usr/lib/os-release").read_text().partition('PRETTY_NAME="')[2].partition('"')[0]
    if "\nID=ubuntu\n" not in (root / "usr/lib/os-release").read_text():
        (root / "etc/os-release").unlink()
        (root / "etc/os-release").write_text(_UBUNTU.format(name))
    for sources in (root / "etc/apt").glob("sources.list*/*"):
        sources.unlink()
    (root / "srv/archive").mkdir()
    (root / "srv/archive/Packages").touch()
    (root / "etc/apt/sources.list").write_text("deb [trusted=yes] file:/srv/archive ./\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost lab\n")
    (root / "etc/pip.conf").write_text(_OFFLINE)


def _in(root: Path, *command: str) -> None:
    """Runs a program in a root, with this machine's network."""
    certificates = Path("/etc/ssl/certs/ca-certificates.crt")
    bound = [f"--bind-ro={certificates}"] if certificates.exists() else []
    pip = [f"--setenv={name}={value}" for name, value in os.environ.items() if name == "PIP_INDEX_URL"]
    isolation = ["--register=no", "--keep-unit", "--quiet", "--pipe"]
    _call("systemd-nspawn", *isolation, *bound, *pip, f"--setenv=PIP_CERT={certificates}", "-D", str(root), *command)


def _call(*command: str) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {(done.stdout + done.stderr)[-4000:]}")
