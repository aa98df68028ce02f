import { type Outcome, NotFoundError, connect, handle } from "polynym";

export async function name(): Promise<string> {
  const [found]: Outcome[] = await connect().resolveMany([handle("joe")]);
  // @ts-expect-error: it may be an error.
  found?.user;
  return found === undefined || found instanceof NotFoundError || !("user" in found)
    ? ""
    : found.user.displayName;
}
