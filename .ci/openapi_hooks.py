"""Bodies with several messages: envelopes of the Connect protocol, and lines."""

import json
import struct

import schemathesis

ENVELOPES = "application/connect+json"
LINES = "application/x-ndjson"


@schemathesis.hook
def before_load_schema(context, schema):
    """Replaces the schemas of these bodies, which OpenAPI 3.1 cannot express, by those of lists."""
    # A shorter deadline may pass: that is no fault.
    schema["components"]["parameters"]["Connect-Timeout-Ms"]["schema"]["minimum"] = 10_000
    for path in schema["paths"].values():
        operation = path["post"]
        request, response = operation["requestBody"], operation["responses"]["200"]
        for part in [request, response]:
            for kind, content in part["content"].items():
                message = content["schema"].get("contentSchema")
                if kind == ENVELOPES and part is request:
                    content["schema"] = message
                elif message:
                    content["schema"] = {"type": "array", "items": message}
        if LINES in request["content"]:
            request["content"][LINES]["schema"]["maxItems"] = 3


@schemathesis.serializer(ENVELOPES)
def envelope(context, value):
    text = json.dumps(value).encode()
    return bytes([0]) + struct.pack(">I", len(text)) + text


@schemathesis.serializer(LINES)
def lines(context, value):
    values = value if isinstance(value, list) else [value]
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


@schemathesis.hook
def after_call(context, case, response):
    """Makes a list of the messages in envelopes, without the last one, which ends the stream."""
    if not response.headers.get("content-type", [""])[0].startswith(ENVELOPES):
        return
    content, messages = response.content, []
    while content:
        flags, length = struct.unpack(">BI", content[:5])
        message = json.loads(content[5 : 5 + length])
        content = content[5 + length :]
        if flags == 0:
            messages.append(message)
    assert flags == 2, "the stream has no end"
    response.content = json.dumps(messages).encode()


@schemathesis.deserializer(LINES)
def lines_of(context, response):
    return [json.loads(line) for line in response.content.splitlines()]
