"""The client for threads, against a real server."""

from __future__ import annotations

import itertools
import pickle
import socket
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone

import pytest

import polynym
from polynym import Client, NotFound, email, handle, phone, social, url, v1
from polynym.testing import Server

Create = Callable[..., v1.User]


def test_a_user_is_found_by_names_of_each_kind(client: Client, create: Create) -> None:
    names = [
        (email("Joe@Example.com"), email("JOE@example.com")),
        (handle("joe"), handle("@Joe")),
        (phone("+14155552671"), phone("(415) 555-2671", "US")),
        (social("github", "583231"), social("GitHub", "583231")),
        (url("https://example.com/joe/"), url("https://EXAMPLE.com/joe")),
    ]
    joe = create(*(name for name, _ in names), display_name="Joe")
    for _, spelling in names:
        assert client.resolve(spelling).user == joe


def test_a_look_up_has_options(client: Client, create: Create) -> None:
    joe = create(handle("joe"), display_name="Joe")
    found = client.resolve(handle("joe"), fields=["user_id"], consistency="linearizable")
    assert found.user == v1.User(user_id=joe.user_id)
    past = datetime.now(timezone.utc) - timedelta(days=1)
    with pytest.raises(polynym.PolynymError) as raised:
        client.resolve(handle("joe"), as_of=past)
    assert raised.value.code in ("NOT_FOUND", "OUT_OF_RANGE")
    client.registry.DisableUser(v1.DisableUserRequest(user_id=joe.user_id))
    with pytest.raises(polynym.FailedPrecondition):
        client.resolve(handle("joe"), max_staleness=timedelta(seconds=1))
    disabled = client.resolve(handle("joe"), show_disabled=True).user
    assert disabled.state == v1.STATE_DISABLED


def test_a_change_that_no_server_saw_has_not_happened() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        # Nothing listens: the connection is refused.
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        with Client(address, timeout=10) as client, pytest.raises(polynym.Unavailable):
            client.registry.CreateUser(v1.CreateUserRequest())


def test_a_time_without_a_zone_is_refused(client: Client) -> None:
    with pytest.raises(ValueError, match="time zone"):
        client.resolve(handle("joe"), as_of=datetime(2026, 1, 1))


def test_errors_have_types_and_attributes(client: Client, create: Create) -> None:
    joe = create(handle("joe"))
    with pytest.raises(NotFound) as not_found:
        client.resolve(handle("ann"))
    assert not_found.value.reason == "IDENTITY_NOT_FOUND"
    with pytest.raises(polynym.AlreadyExists) as exists:
        create(handle("joe"))
    assert exists.value.reason == "IDENTITY_TAKEN"
    assert exists.value.owner == joe.user_id
    assert exists.value.field.startswith("user.identities[0]")
    assert exists.value.request_id
    assert "joe" not in str(exists.value)
    restored = pickle.loads(pickle.dumps(exists.value))
    assert vars(restored) == vars(exists.value)


def test_a_mutation_with_a_request_id_happens_once(client: Client) -> None:
    request = v1.CreateUserRequest(
        user=v1.User(display_name="Joe"), request_id="7f3ab5e0-3c1f-4f0a-9d3b-58e1f2a7c4d1"
    )
    users = [client.registry.CreateUser(request).user.user_id for _ in range(2)]
    assert users[0] == users[1]
    assert request.tenant == ""


def test_many_are_resolved_in_order(client: Client, create: Create) -> None:
    ids = [create(email(f"user{n}@example.com")).user_id for n in range(20)]
    names = [email(f"user{n % 25}@example.com") for n in range(2500)] + [email("no-address")]
    answers = client.resolve_many(iter(names), fields=["user_id"])
    for n, answer in enumerate(answers[:-1]):
        if n % 25 < 20:
            assert isinstance(answer, v1.ResolveIdentityResponse)
            assert answer.user.user_id == ids[n % 25]
        else:
            assert isinstance(answer, NotFound)
    with pytest.raises(polynym.InvalidArgument) as single:
        client.resolve(email("no-address"))
    assert isinstance(answers[-1], polynym.InvalidArgument)
    assert vars(answers[-1]) == vars(single.value)
    assert len(answers) == 2501
    assert client.resolve_many([]) == []


def test_searches_and_histories_have_all_pages(client: Client, create: Create) -> None:
    ids = {create(email(f"user{n}@example.com")).user_id for n in range(7)}
    assert {user.user_id for user in client.search(page_size=3)} == ids
    found = client.search('identities.email = "user3@example.com"', fields=["identities"])
    assert [user.identities[0].display for user in found] == ["user3@example.com"]
    with pytest.raises(polynym.InvalidArgument):
        next(client.search("display_name ="))

    for name in "abc":
        user = client.get_user(min(ids))
        user.display_name = name
        client.registry.UpdateUser(v1.UpdateUserRequest(user=user))
    events = list(client.history(min(ids), page_size=2))
    assert [event.sequence for event in events] == [4, 3, 2, 1]
    created = client.history(min(ids), types=[v1.EVENT_TYPE_USER_CREATED])
    assert list(created) == events[-1:]
    start = events[-1].time.ToDatetime(timezone.utc)
    end = start + timedelta(milliseconds=1)
    assert list(client.history(min(ids), start=start, end=end)) == events[-1:]


def test_a_watch_has_what_happens_after_it_began(client: Client, create: Create) -> None:
    joe = create(handle("joe"))
    with client.watch() as watch:
        ann = create(handle("ann"))
        first = next(watch)
        client.registry.DisableUser(v1.DisableUserRequest(user_id=joe.user_id))
        second = next(watch)
    assert (first.event.user_id, second.event.user_id) == (ann.user_id, joe.user_id)
    assert list(watch) == []

    resumed = client.watch(resume_token=first.resume_token)
    assert next(resumed).event == second.event
    closer = threading.Timer(0.1, resumed.close)
    closer.start()
    assert list(resumed) == []
    closer.join()


def test_a_watch_ends_with_an_error_that_waiting_does_not_mend(client: Client) -> None:
    watch = client.watch(resume_token="nonsense")
    with pytest.raises(polynym.InvalidArgument):
        next(watch)
    assert list(watch) == []


def test_streams_have_typed_errors(client: Client, create: Create) -> None:
    create(handle("joe"))
    exported = list(client.admin.ExportUsers(v1.ExportUsersRequest()))
    assert sum(response.HasField("user") for response in exported) >= 1
    with pytest.raises(NotFound) as raised:
        list(client.admin.ExportUsers(v1.ExportUsersRequest(tenant="nowhere")))
    assert raised.value.reason == "TENANT_NOT_FOUND"


def test_users_are_imported(client: Client, tenant: str) -> None:
    def lines() -> Iterator[v1.ImportUsersRequest]:
        yield v1.ImportUsersRequest(options=v1.ImportUsersRequest.Options(tenant=tenant))
        for n in range(3):
            user = v1.User(identities=[v1.Identity(identifier=handle(f"user{n}"))])
            yield v1.ImportUsersRequest(line=n + 1, user=user)

    responses = list(client.admin.ImportUsers(lines()))
    assert responses[-1].progress.created == 3
    assert client.resolve(handle("user2")).identity.HasField("import_time")
    with pytest.raises(polynym.InvalidArgument):
        list(client.admin.ImportUsers([v1.ImportUsersRequest()]))


def test_every_method_of_the_api_is_there(client: Client) -> None:
    services = [client.directory, client.registry, client.inbox, client.admin]
    methods = itertools.chain.from_iterable(vars(type(service)) for service in services)
    assert len([name for name in methods if name[0].isupper()]) > 40


def test_threads_share_a_client(polynym_server: Server, client: Client, create: Create) -> None:
    joe = create(handle("joe"))
    found: list[str] = []

    def look_up() -> None:
        found.extend(client.resolve(handle("joe")).user.user_id for _ in range(20))

    threads = [threading.Thread(target=look_up) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [joe.user_id] * 160
