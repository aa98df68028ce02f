// Users who are created unless they exist.
import type { Caller } from "./calls/caller.js";
import type { Request } from "./calls/service.js";
import { AlreadyExistsError, NotFoundError } from "./errors.js";
import { Consistency } from "./gen/polynym/v1/directory_service.js";
import { RegistryServiceDefinition as Registry } from "./gen/polynym/v1/registry_service.js";
import { Identifier, type User } from "./gen/polynym/v1/types.js";
import type { Resolution, ResolveOptions } from "./lookups/lookups.js";
import type { CallOptions } from "./options.js";
import { Reason } from "./reasons.js";

/** The user to be created. */
export type NewUser = NonNullable<Request<typeof Registry.methods.createUser>["user"]>;

/** The options of `getOrCreate`. The deadline is that of all its calls together. */
export interface GetOrCreateOptions extends CallOptions, Pick<ResolveOptions, "tenant"> {}

/** The owner of an identifier, and whether this call created it. */
export interface GotOrCreated {
  user: User;
  created: boolean;
}

/** Finds the owner of the identifier, or creates it. Of several callers at once, one creates it. */
export async function getOrCreate(
  caller: Caller,
  resolve: (identifier: Identifier, options: ResolveOptions) => Promise<Resolution>,
  identifier: Identifier,
  user: NewUser,
  options: GetOrCreateOptions,
): Promise<GotOrCreated> {
  const deadline = caller.deadline(options);
  const find = async (consistency?: Consistency) => {
    const timeoutMs = Math.max(deadline - performance.now(), 1);
    return {
      user: (await resolve(identifier, { ...options, consistency, timeoutMs })).user,
      created: false,
    };
  };
  try {
    return await find();
  } catch (error) {
    if (!(error instanceof NotFoundError && error.reason === Reason.IDENTITY_NOT_FOUND)) {
      throw error;
    }
  }
  const request = { user: withIdentity(user, identifier), tenant: options.tenant };
  try {
    const response = await caller.unary(Registry, Registry.methods.createUser, request, {
      ...options,
      deadline,
    });
    return { user: response.user as User, created: true };
  } catch (error) {
    if (!(error instanceof AlreadyExistsError && error.reason === Reason.IDENTITY_TAKEN)) {
      throw error;
    }
    // Another identifier of the user may be the one that is taken.
    return await find(Consistency.LINEARIZABLE).catch((missing) => {
      throw missing instanceof NotFoundError ? error : missing;
    });
  }
}

function withIdentity(user: NewUser, identifier: Identifier): NewUser {
  const identities = user.identities ?? [];
  const bytes = bytesOf(identifier);
  const has = identities.some(
    (identity) => identity.identifier && bytesOf(identity.identifier).equals(bytes),
  );
  return has ? user : { ...user, identities: [{ identifier }, ...identities] };
}

function bytesOf(identifier: Parameters<typeof Identifier.fromPartial>[0]): Buffer {
  return Buffer.from(Identifier.encode(Identifier.fromPartial(identifier)).finish());
}
