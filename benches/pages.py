"""What the pages of benchmarks are made of: tables in Markdown, goals and whether they were reached, the machine."""

import datetime
import os
import platform
import re
import statistics
import subprocess
from pathlib import Path

from measure import CONCURRENCIES, ROOT

CAUTION = " **This was a quick run: it shows that the script works, not how fast the server is.**"


def goals(rows):
    """The table of goals. A row is what, floor, goal, measured figures of the rounds, whether less is better."""
    return table(["", "floor", "goal", "measured", ""], [goal_row(*row) for row in rows])


def goal_row(what, floor, goal, figures, less):
    figure = statistics.median(figures)
    reaches = lambda bound: figure <= bound if less else figure >= bound
    if not reaches(floor):
        verdict = "missed"
    elif goal is None:
        verdict = "reached"
    else:
        verdict = "goal reached" if reaches(goal) else "floor reached"
    bound = "at most" if less else "at least"
    spread = f" ({number(min(figures))} to {number(max(figures))})" if len(figures) > 1 else ""
    return [what, f"{bound} {floor:g}", "" if goal is None else f"{goal:g}", f"{number(figure)}{spread}", verdict]


def number(figure):
    return f"{figure:,.0f}" if abs(figure) >= 100 else f"{figure:.1f}" if abs(figure) >= 20 else f"{figure:.3g}"


def table(head, rows):
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def by_concurrency(run, rows, concurrencies=CONCURRENCIES):
    """A table of medians with a column for each concurrency; a row is a title, a name and a field."""
    head = ["concurrency", *(str(c) for c in concurrencies)]
    medians = lambda name, field: [number(run.median(name, c, field)) for c in concurrencies]
    return table(head, [[title, *medians(name, field)] for title, name, field in rows])


def machine(polynym, sharing, more):
    """Facts about the machine and the versions; `more` are those of one page."""
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    rustc, version = (words([program, "--version"]) for program in ("rustc", polynym))
    return "\n".join(
        f"- {fact}"
        for fact in (
            f"{os.cpu_count()} cores ({cpu[1] if cpu else platform.machine()}), shared by {sharing}",
            f"Linux {platform.release()}",
            f"{version}, {rustc}",
            *more,
            datetime.date.today().isoformat(),
        )
    )


def words(command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


def locked(crate):
    """The version of a crate in the lock file."""
    return re.search(rf'name = "{crate}"\nversion = "(.*)"', (ROOT / "Cargo.lock").read_text())[1]
