"""Made-up users with identities and attributes, for the measurements of searches. All follows from
numbers: the same users each time, and those whom `polynym bench` asks for."""

import itertools
import json
import random
import sys
import time

FIRST = """ada alan barbara claude donald edith edsger frances grace hedy john katherine leslie
margaret radia tony""".split()
LAST = """allen backus bell clarke dijkstra hamilton hoare hopper johnson knuth lamarr lamport
liskov lovelace perlman turing""".split()
WORDS = """account address amount badge billing birthday building campaign carrier category city
contract country currency customer delivery department desk device discount division favourite
invoice language level loyalty manager member network number office option order partner payment
phone plan player postal profile project quarter region renewal report salary season sector status
supplier support survey team territory ticket timezone training vehicle vendor warehouse""".split()
# Attributes by which searches are measured, in every user that has attributes.
TEN, FIFTY, COUNT, CODE = "ten of a kind", "fifty of a kind", "number of the user", "code of user"


def names(count):
    """Names of attributes, of 8 to 40 characters; a longer list begins with the shorter one."""
    pick, made = random.Random(14), [TEN, FIFTY, COUNT, CODE]
    while len(made) < count:
        length, name = pick.randint(8, 40), ""
        while len(name) < length:
            name += (pick.choice(" ._") if name else "") + pick.choice(WORDS)
        name = name[:length].rstrip(" ._")
        if len(name) >= 8 and name not in made:
            made.append(name)
    return made[:count]


def attributes(user, count):
    """The attributes of a user: texts, numbers, truths and times, most with many equal values."""
    pick = random.Random(user)
    values = [f"group {user // 10}", f"group {user // 50}", user, f"code-{user:08}"]
    for place in range(4, count):
        few, many = pick.randrange(500), pick.randrange(1_000_000)
        kinds = f"{WORDS[few % len(WORDS)]} {few}", many, many / 128, few % 2 == 0, (many,)
        values.append(kinds[place % 5])
    return dict(zip(names_of(count), values[:count]))


NAMES = {}


def names_of(count):
    if count not in NAMES:
        NAMES[count] = names(count)
    return NAMES[count]


def as_json(value):
    """An attribute in the JSON form of the API. A tuple of one number is a time."""
    if isinstance(value, tuple):
        day = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(1_600_000_000 + 60 * value[0]))
        return {"timeValue": day}
    kinds = {bool: "boolValue", int: "intValue", float: "doubleValue", str: "stringValue"}
    return {kinds[type(value)]: str(value) if type(value) is int else value}


def email(user):
    return f"{FIRST[user % 16]}.{LAST[user // 16 % 16]}.{user}@example.com"


def line(user, count):
    """A user as `polynym import` takes it: one of those whom `polynym bench` asks for."""
    first, last = FIRST[user % 16], LAST[user // 16 % 16]
    social = {"provider": "github", "subject": str(10_000_000 + user)}
    identities = {"email": email(user)}, {"handle": f"{first}_{user}"}, {"social": social}
    made = {
        "displayName": f"{first} {last} {user}",
        "identities": [{"identifier": one} for one in identities],
        "attributes": {k: as_json(v) for k, v in attributes(user, count).items()},
    }
    return json.dumps(made) + "\n"


def say(words):
    print(words, file=sys.stderr, flush=True)


def spread(start=0x12345678):
    """Ids whose counter is written backwards, so that each falls into another range."""
    for n in itertools.count(1):
        counter = (start + n * 198_491_317) % 2**32
        yield bytes.fromhex(f"{counter:08x}"[::-1]) + tail(n)


def sequential(start=0xF5166775):
    """Ids that count up."""
    for n in itertools.count(1):
        yield ((start + n) % 2**32).to_bytes(4, "big") + tail(n)


def tail(n):
    """Process, version and node, and the time."""
    return bytes.fromhex("3142bd537a50") + (1_790_000_000_000 + n // 20).to_bytes(6, "big")
