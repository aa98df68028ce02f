"""The forms in deploy/: how their files are read, for the scripts that check them and that run them."""

import json
import re
import sys

import linters
from linters import ROOT

linters.install("kubernetes-validate")
sys.path.insert(0, str(linters.folder("kubernetes-validate")))
try:
    import yaml
except ImportError:
    sys.exit("PyYAML is missing, and pip cannot install it")

DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm/polynym"

# The first is that of the chart's kubeVersion.
KUBERNETES = ["1.31.0", "1.35.0", "1.37.0"]


class Yaml(yaml.SafeLoader):
    """A loader that rejects a key which stands twice."""

    def construct_mapping(self, node, deep=False):
        keys = [key.value for key, _ in node.value if not key.tag.endswith(":merge")]
        if len(keys) > len(set(keys)):
            raise yaml.YAMLError(f"a key stands twice in one of {sorted(keys)}, {node.start_mark}")
        return super().construct_mapping(node, deep)


def read(path):
    return (ROOT / path).read_text()


def load(text):
    return [one for one in yaml.load_all(text, Loader=Yaml) if one]


class Image:
    """What the image of deploy/Containerfile runs."""

    def __init__(self):
        lines = read("deploy/Containerfile").rpartition("\nFROM ")[2].splitlines()
        words = {line.partition(" ")[0]: line.partition(" ")[2] for line in lines if line and line[0] != "#"}
        self.user, self.port = words["USER"], int(words["EXPOSE"])
        self.variables = dict(word.split("=", 1) for word in words["ENV"].split())
        self.program, = json.loads(words["ENTRYPOINT"])
        self.command = json.loads(words["CMD"])
        self.check = json.loads(words["HEALTHCHECK"].partition("CMD ")[2])[1:]


def of_kind(objects, *kinds):
    return [one for one in objects if one["kind"] in kinds]


def workloads(objects):
    return of_kind(objects, "Deployment", "StatefulSet", "Job")


def container_of(workload):
    container, = workload["spec"]["template"]["spec"]["containers"]
    return container, {one["name"]: one["value"] for one in container["env"]}


def port_of(address):
    return int(address.rpartition(":")[2])


def seconds(time):
    return int(re.fullmatch(r"(\d+)s", time)[1])
