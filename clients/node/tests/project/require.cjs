const { connect, handle } = require("polynym");

async function main() {
  const client = connect();
  const { user } = await client.getOrCreate(handle("joe"), { displayName: "Joe" });
  console.log(`require.cjs found ${user.displayName}`);
  client.close();
}

main();
