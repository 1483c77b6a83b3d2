"""Fuzzes the decoder with libFuzzer, under address and undefined-behaviour sanitizers, for a bounded time.

``python -m tests.native.fuzz SECONDS`` builds what is needed; the corpus stays in ``build/fuzz`` between
runs. A finding ends the run; it belongs into ``tests/native/regressions``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.native.hostile_inputs import write_hostile_inputs
from tests.native.program import HERE, ROOT, build
from tests.native.seeds import write_seeds

BUILD = ROOT / "build/fuzz"
COMPILERS = ("clang++", *(f"clang++-{version}" for version in range(21, 12, -1)))
SANITIZERS = "fuzzer,address,undefined"
MOST_MEGABYTES = 1024
LONGEST_S = 30  # of wall time: a busy machine is no hang
LARGEST_INPUT = 1 << 16


def find_compiler() -> str | None:
    return next((name for name in COMPILERS if shutil.which(name)), None)


def has_libfuzzer(compiler: str) -> bool:
    program = 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }'
    command = [compiler, "-x", "c++", "-", "-fsanitize=fuzzer,address", "-o", os.devnull]
    return subprocess.run(command, input=program.encode(), capture_output=True, check=False).returncode == 0


def fuzz(program: Path, seconds: int) -> int:
    """Runs from the seeds, the regressions and what former runs found; the fuzzer's exit status."""
    corpus, findings = BUILD / "corpus", BUILD / "findings"
    corpus.mkdir(parents=True, exist_ok=True)
    findings.mkdir(exist_ok=True)
    seeds = write_seeds(BUILD / "seeds") + len(write_hostile_inputs(BUILD / "seeds"))
    print(f"{seeds} seeds; fuzzing for {seconds} s", flush=True)
    limits = [
        f"-max_total_time={seconds}",
        f"-rss_limit_mb={MOST_MEGABYTES}",
        f"-timeout={LONGEST_S}",
        f"-max_len={LARGEST_INPUT}",
    ]
    quiet = ["-print_final_stats=1", "-verbosity=0", "-print_pcs=0", "-print_funcs=0"]
    folders = [str(corpus), str(BUILD / "seeds"), str(HERE / "regressions")]
    options = [f"-dict={HERE / 'metadata.dict'}", f"-artifact_prefix={findings}/"]
    log = BUILD / "log"
    with log.open("w") as output:
        command = [str(program), *limits, *quiet, *options, *folders]
        status = subprocess.run(command, stderr=output, check=False).returncode
    lines = log.read_text("utf-8", errors="replace").splitlines()
    print("\n".join(lines[-40:] if status else [line for line in lines if line.startswith("stat::")]))
    return status


def main() -> int:
    seconds = int(sys.argv[1])
    compiler = find_compiler()
    if compiler is None or not has_libfuzzer(compiler):
        print("make fuzz needs clang++ with libFuzzer: sudo apt-get install clang libclang-rt-dev", file=sys.stderr)
        print("(on Debian 12: sudo apt-get install clang-14 libclang-rt-14-dev)", file=sys.stderr)
        return 1
    program = build("fuzz_decoder.cpp", sanitizers=SANITIZERS, compiler=compiler)
    status = fuzz(program, seconds)
    if status != 0:
        print(f"found something: see {BUILD / 'findings'}; its file belongs into {HERE / 'regressions'}")
    return status


if __name__ == "__main__":
    sys.exit(main())
