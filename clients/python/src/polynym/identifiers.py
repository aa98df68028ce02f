"""Makers of identifiers: the names by which users are found."""

from __future__ import annotations

from polynym.v1 import Identifier, Phone, Social


def email(address: str) -> Identifier:
    """Returns an email address, as typed: `email("Joe@Example.com")`."""
    return Identifier(email=address)


def handle(name: str) -> Identifier:
    """Returns a user name, as typed: `handle("@joe_99")`."""
    return Identifier(handle=name)


def phone(number: str, region: str = "") -> Identifier:
    """Returns a telephone number. A national number needs a region: `phone("555-2671", "US")`."""
    return Identifier(phone=Phone(number=number, region=region))


def social(provider: str, subject: str) -> Identifier:
    """Returns an account at a provider, by its stable id: `social("github", "583231")`."""
    return Identifier(social=Social(provider=provider, subject=subject))


def url(address: str) -> Identifier:
    """Returns the address of a profile page."""
    return Identifier(url=address)
