"""Ways to keep inboxes in MongoDB, for inboxes.py: documents, and the commands of sends and reads."""

import random
from datetime import datetime, timedelta, timezone

import bson
from bson.binary import Binary
from bson.codec_options import CodecOptions
from bson.int64 import Int64
from bson.raw_bson import RawBSONDocument
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

from people import WORDS

PAGE, BUCKET, BYTES = 50, 50, 128 << 10
SENDERS, PIECES = 100, 6
BEGIN = datetime.now(timezone.utc).replace(microsecond=0)
END = BEGIN + timedelta(days=90)
MAJORITY = {"w": "majority"}
RAW = CodecOptions(document_class=RawBSONDocument)


class Notice:
    """A notice: its number says when it was sent."""

    def __init__(self, pick, users, n, recipients):
        self.id = Binary(pick.randbytes(16), 4)
        self.time, self.ends = BEGIN + timedelta(seconds=n), END + timedelta(seconds=n)
        self.sender = Int64(pick.randrange(SENDERS))
        self.content = " ".join(pick.choices(WORDS, k=40))[:200].encode()
        self.to = pick.sample(users, recipients)


class Shape:
    """A way to keep inboxes. `statements` makes the commands of a send, before the clock starts."""

    indexes = []

    def __init__(self, client):
        self.client, self.space = client, f"inboxes.{self.collection}"
        self.database = client.get_database(
            "inboxes", write_concern=WriteConcern("majority"), read_concern=ReadConcern("majority")
        )

    def make(self, shards):
        for keys, more in [*self.indexes, ({"d": 1}, {"expireAfterSeconds": 0})]:
            self.database[self.collection].create_index(list(keys.items()), **more)
        admin = self.client.admin
        admin.command("shardCollection", self.space, key=self.key)
        for n in range(1, PIECES) if self.cut else []:
            at = self.cut((n << 128) // PIECES)
            admin.command("split", self.space, middle=at)
            admin.command("moveChunk", self.space, find=at, to=shards[n % len(shards)])

    def insertion(self, documents):
        command = {"insert": self.collection, "documents": documents, "ordered": False}
        return {**command, "writeConcern": MAJORITY}

    def send(self, notice, command):
        reply = self.database.command(command)
        assert reply["ok"] and "writeErrors" not in reply, reply

    def find(self, filter_, **more):
        command = {"find": self.collection, "filter": filter_, **more}
        command["readConcern"] = {"level": "majority"}
        reply = self.database.command(command, codec_options=RAW)
        return reply["cursor"]["firstBatch"]

    def load(self, notices):
        documents = [one for notice in notices for one in self.documents(notice)]
        for at in range(0, len(documents), 2_000):
            self.database.command(self.insertion(documents[at:at + 2_000]))

    def statement(self, notice):
        return self.insertion([RawBSONDocument(bson.encode(one)) for one in self.documents(notice)])


class OnRead(Shape):
    name, collection, key, cut = "on read", "onread", {"f": "hashed"}, None
    indexes = [({"to": 1, "t": -1}, {})]

    def documents(self, notice):
        fields = {"_id": notice.id, "f": notice.sender, "to": notice.to, "t": notice.time}
        return [{**fields, "b": notice.content, "d": notice.ends}]

    def read(self, user):
        return self.find({"to": user}, sort={"t": -1}, limit=PAGE)

    def ids(self, user):
        return [own["_id"] for own in self.read(user)]


class OnWrite(Shape):
    name, collection, key = "on write", "onwrite", {"o": 1, "t": 1}
    indexes = [({"o": 1, "t": 1}, {})]

    def cut(self, at):
        return {"o": Binary(at.to_bytes(16, "big"), 4), "t": bson.MinKey()}

    def documents(self, notice):
        fields = {"i": notice.id, "t": notice.time, "b": notice.content, "d": notice.ends}
        return [{"_id": bson.ObjectId(), "o": user, **fields} for user in notice.to]

    def read(self, user):
        return self.find({"o": user}, sort={"t": -1}, limit=PAGE)

    def ids(self, user):
        return [own["i"] for own in self.read(user)]


class InId(Shape):
    name, collection, key = "on write, in _id", "inid", {"_id": 1}

    def cut(self, at):
        return {"_id": at.to_bytes(16, "big") + bytes(24)}

    def documents(self, notice):
        at = int(notice.time.timestamp()).to_bytes(8, "big") + notice.id
        fields = {"t": notice.time, "b": notice.content, "d": notice.ends}
        return [{"_id": bytes(user) + at, **fields} for user in notice.to]

    def read(self, user):
        low = bytes(user)
        range_ = {"$gte": low + bytes(24), "$lte": low + b"\xff" * 24}
        return self.find({"_id": range_}, sort={"_id": -1}, limit=PAGE)

    def ids(self, user):
        return [Binary(own["_id"][24:], 4) for own in self.read(user)]


def bucket_id(user, first):
    return bytes(user) + first.to_bytes(8, "big")


def open_id(user):
    return bucket_id(user, (1 << 64) - 1)


class Buckets(Shape):
    name, collection, key = "buckets", "buckets", {"_id": 1}

    def __init__(self, client):
        super().__init__(client)
        self.rolled = 0

    def cut(self, at):
        return {"_id": at.to_bytes(16, "big") + bytes(8)}

    def entry(self, notice):
        return {"i": notice.id, "t": notice.time, "b": notice.content}

    def bucket(self, user, first, notices, recent=()):
        count, size = Int64(len(notices)), Int64(sum(len(one.content) for one in notices))
        entries, last = [self.entry(one) for one in notices], notices[-1].ends
        fields = {"_id": open_id(user), "f": Int64(first), "n": count, "z": size, "d": last}
        return {**fields, "m": entries, **({"l": recent} if recent else {})}

    def load(self, notices):
        inboxes = {}
        for notice in notices:
            for user in notice.to:
                inboxes.setdefault(user, []).append(notice)
        documents = []
        for user, own in inboxes.items():
            starts = range(0, len(own), BUCKET)
            for at in starts:
                recent = [one.id for one in own[at - BUCKET:at]] if at == starts[-1] else ()
                made = self.bucket(user, at + 1, own[at:at + BUCKET], recent)
                if at != starts[-1]:
                    made["_id"] = bucket_id(user, at + 1)
                documents.append(made)
        random.Random(8).shuffle(documents)
        for at in range(0, len(documents), 200):
            self.database.command(self.insertion(documents[at:at + 200]))

    def statement(self, notice):
        entry = self.entry(notice)
        change = {"$inc": {"n": Int64(1), "z": Int64(len(notice.content))}}
        change |= {"$max": {"d": notice.ends}, "$push": {"m": entry}}
        change["$setOnInsert"] = {"f": Int64(1)}
        updates = []
        for user in notice.to:
            filter_ = {"_id": open_id(user), "m.i": {"$ne": notice.id}, "l": {"$ne": notice.id}}
            filter_ |= {"n": {"$lt": Int64(BUCKET)}, "z": {"$lt": Int64(BYTES)}}
            update = {"q": filter_, "u": change, "upsert": True}
            updates.append(RawBSONDocument(bson.encode(update)))
        command = {"update": self.collection, "updates": updates, "ordered": False}
        return {**command, "writeConcern": MAJORITY}

    def send(self, notice, command):
        reply = self.database.command(command)
        for error in reply.get("writeErrors", ()):
            assert error["code"] == 11_000, error
            self.roll(notice.to[error["index"]], notice)

    def roll(self, user, notice):
        """A full bucket becomes one of its own, and the open one begins anew."""
        def work(session):
            inbox = self.database[self.collection]
            found = inbox.find_one({"_id": open_id(user)}, session=session)
            if found["n"] < BUCKET:
                push = {"$inc": {"n": 1, "z": len(notice.content)}}
                push["$push"] = {"m": self.entry(notice)}
                inbox.update_one({"_id": open_id(user), "f": found["f"]}, push, session=session)
                return
            closed = {**found, "_id": bucket_id(user, found["f"])}
            recent = [own["i"] for own in found["m"]]
            closed.pop("l", None)
            inbox.replace_one({"_id": closed["_id"]}, closed, upsert=True, session=session)
            anew = self.bucket(user, found["f"] + found["n"], [notice], recent)
            inbox.replace_one({"_id": open_id(user), "f": found["f"]}, anew, session=session)
            self.rolled += 1

        concerns = {"read_concern": ReadConcern("snapshot")}
        with self.client.start_session() as session:
            session.with_transaction(work, write_concern=WriteConcern("majority"), **concerns)

    def read(self, user):
        """As many finds as Polynym makes: the open bucket, then those before it."""
        latest = self.find({"_id": open_id(user)}, limit=1)
        if not latest or latest[0]["n"] >= PAGE or latest[0]["f"] <= 1:
            return latest
        range_ = {"$gte": bucket_id(user, 0), "$lt": bucket_id(user, latest[0]["f"])}
        return latest + self.find({"_id": range_}, sort={"_id": -1}, limit=1)

    def ids(self, user):
        found = [own["i"] for bucket in self.read(user) for own in reversed(list(bucket["m"]))]
        return found[:PAGE]


class OneStatement(Buckets):
    """The same documents, by other statements: one update for all recipients of a send, a find that
    tells who has it, and one find for a read."""

    name, collection = "buckets, one statement", "statement"

    def statement(self, notice):
        change = {"$inc": {"n": Int64(1), "z": Int64(len(notice.content))}}
        change |= {"$max": {"d": notice.ends}, "$push": {"m": self.entry(notice)}}
        filter_ = {"_id": {"$in": [open_id(user) for user in notice.to]}}
        filter_ |= {"m.i": {"$ne": notice.id}, "l": {"$ne": notice.id}}
        filter_ |= {"n": {"$lt": Int64(BUCKET)}, "z": {"$lt": Int64(BYTES)}}
        updates = [{"q": filter_, "u": change, "multi": True}]
        return {"update": self.collection, "updates": updates, "writeConcern": MAJORITY}

    def send(self, notice, command):
        reply = self.database.command(command)
        assert "writeErrors" not in reply, reply
        ids = {open_id(user): user for user in notice.to}
        has = {"_id": {"$in": list(ids)}, "m.i": notice.id}
        for found in self.find(has, projection={"_id": 1}):
            del ids[found["_id"]]
        for user in ids.values():
            self.roll(user, notice)

    def read(self, user):
        range_ = {"$gte": bucket_id(user, 0), "$lte": open_id(user)}
        return self.find({"_id": range_}, sort={"_id": -1}, limit=2)
