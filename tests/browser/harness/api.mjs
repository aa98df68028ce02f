// The API over HTTP and JSON: what tests prepare by, and compare pages with.
import { randomUUID } from "node:crypto";

/** An error of the API. */
export class ApiError extends Error {
  constructor(method, status, body) {
    super(`${method}: ${status} ${JSON.stringify(body)}`);
    this.code = body.code;
    this.reason = body.details?.map((detail) => detail.debug?.reason).find(Boolean);
  }
}

/** The API of a server, in one tenant. */
export class Api {
  constructor(origin, tenant, token) {
    Object.assign(this, { origin, tenant, token });
  }

  /** Calls a method, such as `Registry.CreateUser`. */
  async call(name, request = {}, headers = {}) {
    const [service, method] = name.split(".");
    const response = await fetch(`${this.origin}/polynym.v1.${service}Service/${method}`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(this.token && { authorization: `Bearer ${this.token}` }),
        ...headers,
      },
      body: JSON.stringify({ tenant: this.tenant, ...request }),
    });
    const body = await response.json();
    if (!response.ok) {
      throw new ApiError(name, response.status, body);
    }
    return body;
  }

  /** Creates a user from identifiers in text form, such as `email:joe@example.com`. */
  async create(displayName, identifiers = [], attributes = {}) {
    const user = {
      displayName,
      identities: identifiers.map((text) => ({ identifier: identifier(text) })),
      attributes: Object.fromEntries(Object.entries(attributes).map(([name, value]) => [name, attribute(value)])),
    };
    return (await this.call("Registry.CreateUser", { user, requestId: randomUUID() })).user;
  }

  async get(userId) {
    return (await this.call("Directory.GetUser", { userId })).user;
  }

  /** The user who owns an identifier; undefined if nobody does. */
  async resolve(text) {
    try {
      return (await this.call("Directory.ResolveIdentity", { identifier: identifier(text) })).user;
    } catch (error) {
      if (error.code === "not_found") {
        return undefined;
      }
      throw error;
    }
  }

  /** All users that a filter matches. */
  async search(filter) {
    const users = [];
    let pageToken = "";
    do {
      const page = await this.call("Directory.SearchUsers", { filter, pageToken, pageSize: 1000 });
      users.push(...(page.users ?? []));
      pageToken = page.nextPageToken;
    } while (pageToken);
    return users;
  }

  async history(userId) {
    return (await this.call("Directory.ListHistory", { userId })).events ?? [];
  }
}

/** An identifier of its text form. */
export function identifier(text) {
  const split = text.indexOf(":");
  const [kind, value] = [text.slice(0, split), text.slice(split + 1)];
  if (kind === "phone") {
    return { phone: { number: value } };
  }
  if (kind === "social") {
    const slash = value.indexOf("/");
    return { social: { provider: value.slice(0, slash), subject: value.slice(slash + 1) } };
  }
  return { [kind]: value };
}

function attribute(value) {
  if (Array.isArray(value)) {
    return { listValue: { values: value } };
  }
  if (typeof value === "boolean") {
    return { boolValue: value };
  }
  return typeof value === "number" ? { doubleValue: value } : { stringValue: value };
}
