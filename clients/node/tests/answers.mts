// A server that answers look-ups, and what tests of these need.
import { type Identifier, handle } from "polynym";
import { Failure, type Script, type SeenCall } from "./scripted.mjs";

/** The answer to one look-up. */
export type Item = (identifier: Identifier) => unknown;

export const nameOf = (identifier: Identifier) => String(identifier.kind?.value);
export const found: Item = (identifier) => ({
  user: { userId: nameOf(identifier) },
  identity: { identifier },
});

/** Answers single look-ups and batches alike. */
export function answers(item: Item = found): Script {
  return ({ method, request }) => {
    if (method === "ResolveIdentity") {
      return item(request.identifier);
    }
    const results = request.identifiers.map((identifier: Identifier) => {
      const result = item(identifier);
      const [$case, value] =
        result instanceof Failure ? ["error", result.status] : ["found", result];
      return { outcome: { $case, value } };
    });
    return { results };
  };
}

/** An answer that waits until it is released. */
export function held(script: Script = answers()) {
  let release!: () => void;
  const released = new Promise<void>((resolve) => (release = resolve));
  return { release, script: (call: SeenCall) => released.then(() => script(call)) };
}

/** How many identifiers each call has. */
export const sizes = (calls: SeenCall[]) =>
  calls.map(({ request }) => request.identifiers?.length ?? 1);
export const numbered = (count: number) =>
  Array.from({ length: count }, (_, index) => handle(`user${index}`));
