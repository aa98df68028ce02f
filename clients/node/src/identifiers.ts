// Identifiers as programs write them.
import type { Identifier } from "./gen/polynym/v1/types.js";

/** An email address, such as `joe@example.com`. */
export function email(address: string): Identifier {
  return { kind: { $case: "email", value: address } };
}

/** A handle, such as `joe_99`, with or without `@`. */
export function handle(name: string): Identifier {
  return { kind: { $case: "handle", value: name } };
}

/** A telephone number: international, or national with the region, such as `US`. */
export function phone(number: string, region = ""): Identifier {
  return { kind: { $case: "phone", value: { number, region } } };
}

/** An account at another provider: `social("github", "583231")`. */
export function social(provider: string, subject: string): Identifier {
  return { kind: { $case: "social", value: { provider, subject } } };
}

/** The address of a profile page. */
export function url(address: string): Identifier {
  return { kind: { $case: "url", value: address } };
}
