import { AlreadyExistsError, connect, email, phone } from "polynym";

const client = connect(); // POLYNYM_SERVER, or http://127.0.0.1:7171
const joe = { identities: [{ identifier: email("Joe@Example.com") }, { identifier: phone("(415) 555-2671", "US") }] };
try {
  await client.registry.createUser({ user: { displayName: "Joe Smith", ...joe } });
} catch (error) {
  if (!(error instanceof AlreadyExistsError)) throw error;
}
const { user } = await client.resolve(phone("+1 415 555 2671"));
console.log(user.displayName, user.userId);
client.close();
