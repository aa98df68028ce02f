// A web server with Express: it signs users up by their email addresses, and looks them up. Run it
// with `npm install polynym express`, a server of Polynym at POLYNYM_SERVER, and `node sign-
// up.mjs`.
import express from "express";
import { PolynymError, connect, email } from "polynym";

const client = connect(); // One for the process: calls share its connections.
const app = express();
app.use(express.json());

/** Creates a user, or finds the one who is there: a form that is sent twice makes one user. */
app.post("/users", async (request, response) => {
  const { address, name } = request.body ?? {};
  const { user, created } = await client.getOrCreate(email(String(address)), { displayName: name });
  response.status(created ? 201 : 200).json({ id: user.userId, name: user.displayName });
});

/** Finds the user with an address. */
app.get("/users/:address", async (request, response) => {
  const { user } = await client.resolve(email(request.params.address));
  response.json({ id: user.userId, name: user.displayName });
});

/** The statuses of HTTP for codes of errors. All others are faults of this server. */
const STATUSES = {
  INVALID_ARGUMENT: 400,
  NOT_FOUND: 404,
  ALREADY_EXISTS: 409,
  FAILED_PRECONDITION: 409,
  RESOURCE_EXHAUSTED: 429,
  UNAVAILABLE: 503,
  DEADLINE_EXCEEDED: 504,
};

// Express knows by the four parameters that this is for errors.
app.use((error, _request, response, next) => {
  if (!(error instanceof PolynymError)) {
    next(error);
    return;
  }
  if (error.retryAfterMs !== undefined) {
    response.set("Retry-After", String(Math.ceil(error.retryAfterMs / 1_000)));
  }
  response
    .status(STATUSES[error.code] ?? 500)
    .json({ reason: error.reason, message: error.message });
});

const server = app.listen(Number(process.env.PORT ?? 8080), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${server.address().port}`);
});
process.once("SIGTERM", () => server.close(() => client.close()));
