// Adds the shards, and creates the users of Polynym with their roles. Safe to run again: passwords follow the secrets.
const secret = (name) => require("fs").readFileSync(`/run/secrets/${name}`, "utf8").trim()

db = db.getSiblingDB("admin")
const password = secret("mongodb_admin")
try {
  db.auth("admin", password)
} catch {
  // On a new cluster. A second administrator cannot be created like this.
  db.createUser({ user: "admin", pwd: password, roles: ["root"] })
  db.auth("admin", password)
}

for (const shard of ["shard1", "shard2"]) sh.addShard(`${shard}/${shard}:27017`)

// scripts/check-deploy compares these with docs/mongodb.md, which has the other roles, too.
const role = (definition) => db.getRole(definition.role) || db.createRole(definition)
var on = (collection, actions) => ({ resource: { db: "polynym", collection }, actions })
var config = (collection) => ({ resource: { db: "config", collection }, actions: ["find"] })
role({ role: "polynymServe", roles: [], privileges: [
  { resource: { cluster: true }, actions: ["shardingState"] },
  on("", ["listCollections"]),
  on("users", ["find", "insert", "update", "remove", "listIndexes", "changeStream"]),
  on("identities", ["find", "insert", "update", "remove", "listIndexes"]),
  on("requests", ["find", "insert", "update", "listIndexes"]),
  on("tenants", ["find", "insert", "update", "remove", "listIndexes"]),
  on("names", ["find", "insert", "update", "remove", "listIndexes"]),
  on("journal", ["find", "insert", "update", "remove", "listIndexes"]),
  on("ended", ["find", "insert", "update", "remove", "listIndexes"]),
  on("usage", ["find", "insert", "update", "listIndexes"]),
  on("notices", ["find", "insert", "update", "remove", "listIndexes"]),
  on("bulk", ["find", "insert", "update", "remove", "listIndexes"]),
  on("servers", ["find", "insert", "update", "remove", "listIndexes"]),
  on("meta", ["find", "update"])
] })
role({ role: "polynymInit", roles: [], privileges: [
  { resource: { cluster: true }, actions: ["shardingState"] },
  on("", ["listCollections", "find", "createCollection", "createIndex", "collMod", "listIndexes"]),
  on("meta", ["insert"])
] })
role({ role: "polynymInitCluster", roles: [], privileges: [
  { resource: { cluster: true }, actions: ["listShards", "enableSharding"] },
  on("", ["enableSharding", "splitChunk", "moveChunk"]),
  config("collections"),
  config("chunks"),
  config("tags")
] })

const user = (name, password, roles) =>
  db.getUser(name) ? db.updateUser(name, { pwd: password, roles }) : db.createUser({ user: name, pwd: password, roles })
user("polynym-serve", secret("mongodb_serve"), ["polynymServe"])
user("polynym-init", secret("mongodb_init"), ["polynymInit", "polynymInitCluster"])
print("the cluster is ready")
