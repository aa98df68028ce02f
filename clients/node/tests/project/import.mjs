import { connect, handle } from "polynym";

const client = await connect().connect();
const { user } = await client.getOrCreate(handle("joe"), { displayName: "Joe" });
console.log(`import.mjs found ${user.displayName}`);
client.close();
