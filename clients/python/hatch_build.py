"""Generates polynym.v1 from the API definition: messages with types, and a class for each service.

In a checkout the definition is the folder proto at its root; a source distribution carries a copy.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2 as pb
from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "polynym/v1"
MARK = '"""{}. Generated from the API definition: do not edit."""\n'


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Generates code before a wheel, and adds the definition to a source distribution."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Runs before each build."""
        root = Path(self.root)
        proto = find_proto(root)
        if self.target_name == "sdist":
            build_data["force_include"][str(proto)] = "proto"
        else:
            generate(proto, root / "src")


def find_proto(root: Path) -> Path:
    """Returns the folder of the API definition."""
    for folder in (root / "proto", root.parent.parent / "proto"):
        if (folder / PACKAGE).is_dir():
            return folder
    raise SystemExit(f"no API definition (proto/{PACKAGE}) in {root} nor in the checkout around it")


def generate(proto: Path, source: Path) -> None:
    """Writes polynym/v1 into a folder of sources."""
    package = source / PACKAGE
    shutil.rmtree(package, ignore_errors=True)
    package.mkdir(parents=True)
    files = compile_protos(proto, source)
    write(package / "__init__.py", messages_module(files))
    write(package / "stubs.py", stubs_module(files))


def compile_protos(proto: Path, source: Path) -> list[pb.FileDescriptorProto]:
    """Runs the compiler, and returns the files of the package with their comments."""
    import grpc_tools
    from grpc_tools import protoc

    names = sorted(str(path.relative_to(proto)) for path in (proto / PACKAGE).glob("*.proto"))
    descriptors = source / PACKAGE / "descriptors"
    well_known = Path(grpc_tools.__file__).parent / "_proto"
    status = protoc.main(
        [
            "protoc",
            f"-I{proto}",
            f"-I{well_known}",
            f"--python_out={source}",
            f"--pyi_out={source}",
            f"--descriptor_set_out={descriptors}",
            "--include_source_info",
            *names,
        ]
    )
    if status:
        raise SystemExit(f"protoc failed with status {status}")
    parsed = pb.FileDescriptorSet.FromString(descriptors.read_bytes())
    descriptors.unlink()
    return list(parsed.file)


def write(path: Path, lines: list[str]) -> None:
    """Writes a module."""
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def module_of(file: pb.FileDescriptorProto) -> str:
    """Returns the name of the module with the messages of a file."""
    return Path(file.name).stem + "_pb2"


def messages_module(files: list[pb.FileDescriptorProto]) -> list[str]:
    """Returns the module that exports all messages and enums of the package."""
    lines = [MARK.format("The messages of the API")]
    for file in files:
        names = [message.name for message in file.message_type]
        for enum in file.enum_type:
            names += [enum.name, *(value.name for value in enum.value)]
        lines += [f"from polynym.v1.{module_of(file)} import {name} as {name}" for name in names]
    return lines


def stubs_module(files: list[pb.FileDescriptorProto]) -> list[str]:
    """Returns the module with the methods, and two classes for each service."""
    services = [file for file in files if file.service]
    types = {
        f".{file.package}.{message.name}": f"{module_of(file)}.{message.name}"
        for file in files
        for message in file.message_type
    }
    lines = [
        MARK.format("The services of the API"),
        "from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator\n",
        "from polynym._methods import AsyncCaller, Caller, Metadata, Method",
        "from polynym._pages import all_items, all_items_async",
        *(f"from polynym.v1 import {module_of(file)}" for file in files),
    ]
    for file in services:
        comments = comments_of(file)
        for i, service in enumerate(file.service):
            for method in service.method:
                lines += constant(f"{file.package}.{service.name}", method, types)
            for is_async in (False, True):
                lines += stub_class(service, comments, i, types, is_async)
                lines += iterators(service, files, types, is_async)
    return lines


def comments_of(file: pb.FileDescriptorProto) -> dict[tuple[int, ...], str]:
    """Returns the comments of a file by the paths of what they describe."""
    locations = file.source_code_info.location
    return {tuple(place.path): place.leading_comments.strip() for place in locations}


def constant_name(name: str) -> str:
    """Returns the name of a method's constant: RESOLVE_IDENTITY of ResolveIdentity."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()


def constant(service: str, method: pb.MethodDescriptorProto, types: dict[str, str]) -> list[str]:
    """Returns the constant of a method."""
    reads = method.options.idempotency_level == pb.MethodOptions.NO_SIDE_EFFECTS
    request, response = types[method.input_type], types[method.output_type]
    return [
        f"\n{constant_name(method.name)} = Method(",
        f'    "/{service}/{method.name}", {request}, {response}, reads={reads}',
        ")",
    ]


def stub_class(
    service: pb.ServiceDescriptorProto,
    comments: dict[tuple[int, ...], str],
    i: int,
    types: dict[str, str],
    is_async: bool,
) -> list[str]:
    """Returns the class of a service."""
    prefix = "Async" if is_async else ""
    lines = [
        f"\n\nclass {prefix}{service.name}:",
        docstring(comments.get((6, i), service.name), 4),
        f"\n    def __init__(self, caller: {prefix}Caller) -> None:",
        "        self._caller = caller",
    ]
    for j, method in enumerate(service.method):
        comment = comments.get((6, i, 2, j), method.name)
        lines += stub_method(method, comment, types, is_async)
    return lines


def stub_method(
    method: pb.MethodDescriptorProto, comment: str, types: dict[str, str], is_async: bool
) -> list[str]:
    """Returns the method of a class."""
    request, response = types[method.input_type], types[method.output_type]
    prefix = "Async" if is_async else ""
    keyword, action = ("async def", "await ") if is_async else ("def", "")
    call = "unary"
    if method.client_streaming:
        union = f"Iterable[{request}] | AsyncIterable[{request}]"
        request = union if is_async else f"Iterable[{request}]"
    if method.server_streaming:
        keyword, action, response = "def", "", f"{prefix}Iterator[{response}]"
        call = "stream_stream" if method.client_streaming else "unary_stream"
    return [
        f"\n    {keyword} {method.name}(",
        f"        self, request: {request},",
        "        *, timeout: float | None = None, metadata: Metadata = (),",
        f"    ) -> {response}:",
        docstring(comment, 8),
        f"        return {action}self._caller.{call}(",
        f"            {constant_name(method.name)}, request, timeout, metadata",
        "        )",
    ]


def iterators(
    service: pb.ServiceDescriptorProto,
    files: list[pb.FileDescriptorProto],
    types: dict[str, str],
    is_async: bool,
) -> list[str]:
    """Returns the methods that read all pages of a list: list_tenants of ListTenants."""
    messages = {f".{file.package}.{m.name}": m for file in files for m in file.message_type}
    lines = []
    for method in service.method:
        fields = messages[method.output_type].field
        if any(field.name == "next_page_token" for field in fields):
            items = next(field for field in fields if field.label == field.LABEL_REPEATED)
            lines += iterator(method, items, types, is_async)
    return lines


def iterator(
    method: pb.MethodDescriptorProto,
    items: pb.FieldDescriptorProto,
    types: dict[str, str],
    is_async: bool,
) -> list[str]:
    """Returns the method that reads all pages of a list."""
    name, item = constant_name(method.name).lower(), types.get(items.type_name, "str")
    prefix, suffix = ("Async", "_async") if is_async else ("", "")
    comment = f"Yields all items of {method.name}, page by page, each with the timeout."
    return [
        f"\n    def {name}(",
        f"        self, request: {types[method.input_type]},",
        "        *, timeout: float | None = None, metadata: Metadata = (),",
        f"    ) -> {prefix}Iterator[{item}]:",
        docstring(comment, 8),
        f'        return all_items{suffix}(self.{method.name}, request, "{items.name}",',
        "            timeout=timeout, metadata=metadata)",
    ]


def docstring(comment: str, indent: int) -> str:
    """Returns a comment as a docstring."""
    lines = [line.strip() for line in comment.replace("\\", "\\\\").splitlines()]
    text = ("\n" + " " * indent).join(lines)
    return f'{" " * indent}"""{text}"""'


if __name__ == "__main__":
    generate(find_proto(Path(sys.argv[0]).resolve().parent), Path(sys.argv[1]))
