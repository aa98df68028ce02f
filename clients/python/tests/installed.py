"""Checks the package where nothing else is installed, and calls a server with it."""

from importlib.metadata import files, metadata

import polynym
from polynym.testing import serve

found = metadata("polynym")
assert found["Version"] == polynym.__version__, found["Version"]
assert found["License-Expression"] == "Apache-2.0"
assert found["Author"]
urls = [url.split(",")[0] for url in found.get_all("Project-URL") or ()]
assert {"Homepage", "Source", "Issues"} <= set(urls), urls
assert found["Description-Content-Type"] == "text/markdown"
names = {file.name for file in files("polynym") or ()}
assert {"LICENSE", "py.typed", "stubs.py", "types_pb2.pyi"} <= names, names

with serve() as server, polynym.Client(server.address, timeout=60).connect() as client:
    name = polynym.email("joe@example.com")
    joe = client.get_or_create(name)
    assert joe.created
    assert client.resolve(name).user == joe.user
print(f"polynym {polynym.__version__} is installed and works")
