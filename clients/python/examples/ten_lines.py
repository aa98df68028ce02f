"""Creates a user, and finds it by another spelling of its name."""

from polynym import Client, NotFound, email
from polynym.v1 import CreateUserRequest, Identity, User

with Client() as client:  # POLYNYM_SERVER, or http://127.0.0.1:7171
    joe = User(display_name="Joe", identities=[Identity(identifier=email("Joe@Example.com"))])
    client.registry.CreateUser(CreateUserRequest(user=joe))
    print(client.resolve(email("JOE@example.com")).user.display_name)
    try:
        client.resolve(email("nobody@example.com"))
    except NotFound as error:
        print(error.reason)
