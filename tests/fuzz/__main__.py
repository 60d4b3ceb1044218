"""Fuzzes each target for some minutes, guided by what of app and policy an input reaches: ``python -m tests.fuzz``.

What reached something new is kept outside the checkout, and begun with the next time. An input that led to what may
not happen is kept there, too, and ``python -m tests.fuzz --replay FILE TARGET`` runs it once more. REST is fuzzed from
its OpenAPI document, for as long.
"""

import argparse
import logging
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import atheris
import structlog

with atheris.instrument_imports(include=["app", "policy"]):
    from tests.fuzz.mutation import AT_MOST, mutated
    from tests.fuzz.rest import fuzz_rest
    from tests.fuzz.targets import TARGETS, run

_AFRESH = 0.3  # of the inputs are made of a good one
_KNOWING = 0.9  # of the changes know what the bytes mean


def main() -> int:
    """What ``make fuzz`` does; the number of targets that something was found in."""
    arguments = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    arguments.add_argument(
        "targets", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)} and rest; all of them"
    )
    arguments.add_argument("--minutes", type=float, default=10, help="for each target")
    arguments.add_argument("--replay", type=Path, help="an input to run once more, instead")
    arguments.add_argument("--in-this-process", action="store_true", help=argparse.SUPPRESS)
    given = arguments.parse_args()
    targets = given.targets or [*TARGETS, "rest"]
    if given.replay:
        run(targets[0], given.replay.read_bytes())
        return 0
    if given.in_this_process:
        _fuzz(targets[0], given.minutes)
    found = 0
    for name in targets:
        print(f"== {name}", flush=True)
        if name == "rest":
            found += fuzz_rest(given.minutes) != 0
        else:
            command = [sys.executable, "-m", "tests.fuzz", name, "--in-this-process", "--minutes", str(given.minutes)]
            found += subprocess.run(command, check=False).returncode != 0
    return found


def _fuzz(name: str, minutes: float) -> None:
    """Does not return: libFuzzer ends the process."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    target = TARGETS[name]
    seeds = target.seeds()
    kept = _directory() / name
    kept.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds):
        (kept / f"seed-{number}").write_bytes(seed)

    def mutate(data: bytes, max_size: int, seed: int) -> bytes:
        chance = Random(seed)
        begun_with = chance.choice(seeds) if chance.random() < _AFRESH else data
        if chance.random() < _KNOWING:
            return mutated(begun_with, seeds, chance)[:max_size]
        return atheris.Mutate(data, max_size)

    options = [
        f"-max_total_time={int(60 * minutes)}",
        f"-max_len={AT_MOST}",
        "-timeout=60",
        "-rss_limit_mb=2048",
        "-reduce_inputs=0",
    ]
    options += ["-print_final_stats=1", f"-artifact_prefix={_directory()}/{name}-", str(kept)]
    atheris.Setup([name, *options], lambda data: run(name, data), custom_mutator=mutate)
    atheris.Fuzz()


def _directory() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "quotaward" / "fuzz"


sys.exit(main())
