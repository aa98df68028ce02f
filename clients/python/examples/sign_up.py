"""Signing up and looking up with FastAPI: `uvicorn sign_up:app` in this folder."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from polynym import AsyncClient, PolynymError, email, v1

STATUS = {
    "INVALID_ARGUMENT": 400,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "RESOURCE_EXHAUSTED": 429,
    "UNAVAILABLE": 503,
}


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Each worker has a client of its own."""
    async with AsyncClient() as app.state.client:
        yield


app = FastAPI(lifespan=lifespan)


class SignUp(BaseModel):
    """A person who signs up."""

    address: str
    name: str


@app.exception_handler(PolynymError)
async def failed(request: Request, error: PolynymError) -> JSONResponse:
    """Answers with the reason of an error, which has no identifiers in it."""
    content = {"reason": error.reason or error.code, "message": error.message}
    return JSONResponse(content, STATUS.get(error.code, 500))


@app.post("/users")
async def sign_up(body: SignUp, request: Request, response: Response) -> dict[str, str]:
    """Creates the user, unless the address has one: signing up twice is no error."""
    new = v1.User(display_name=body.name)
    found = await request.app.state.client.get_or_create(email(body.address), new)
    response.status_code = 201 if found.created else 200
    return {"id": found.user.user_id, "name": found.user.display_name}


@app.get("/users/{address}")
async def look_up(address: str, request: Request) -> dict[str, str]:
    """Finds a user by any spelling of the address."""
    found = await request.app.state.client.resolve(email(address))
    return {"id": found.user.user_id, "name": found.user.display_name}
