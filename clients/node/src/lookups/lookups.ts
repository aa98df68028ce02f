// Look-ups of one identifier and of many.
import type { Caller, UnaryOptions } from "../calls/caller.js";
import { partsOfStatus } from "../calls/status.js";
import {
  type ErrorParts,
  InternalError,
  InvalidArgumentError,
  PolynymError,
  errorOf,
} from "../errors.js";
import {
  type BatchResolveIdentitiesResponse_Result as Result,
  type Consistency,
  DirectoryServiceDefinition as Directory,
} from "../gen/polynym/v1/directory_service.js";
import { Identifier, type Identity, type User } from "../gen/polynym/v1/types.js";
import type { CallOptions } from "../options.js";
import { Reason } from "../reasons.js";

/** Requests have a megabyte at most: this leaves room for the rest of them. */
const MAX_BYTES = 900 * 1024;

/** The owner of an identifier. */
export interface Resolution {
  /** The user. */
  user: User;
  /** The user's identity with the identifier. */
  identity: Identity;
}

/** The owner of an identifier, or why there is none. */
export type Outcome = Resolution | PolynymError;

/** The options of a look-up. */
export interface ResolveOptions extends CallOptions {
  /** The tenant to look in. */
  tenant?: string;
  /** How fresh the response must be. */
  consistency?: Consistency;
  /** Accepts an answer from the server's cache, at most this old, in milliseconds. */
  maxStalenessMs?: number;
  /** Returns a disabled user instead of failing with `USER_DISABLED`. */
  showDisabled?: boolean;
  /** The fields of the user to return, such as `["user_id", "identities"]`. */
  fields?: readonly string[];
  /** Returns the owner of the identifier at this time. */
  asOf?: Date;
}

/** The fields of the requests of a look-up, except for its identifiers. */
export type Query = ReturnType<typeof queryOf>;

/** The fields of the request. */
export function queryOf(options: ResolveOptions) {
  const { tenant, consistency, maxStalenessMs, showDisabled, fields, asOf } = options;
  const maxStaleness = maxStalenessMs === undefined ? undefined : duration(maxStalenessMs);
  return { tenant, consistency, maxStaleness, showDisabled, readMask: fields && [...fields], asOf };
}

function duration(ms: number) {
  const seconds = Math.floor(ms / 1_000);
  return { seconds: BigInt(seconds), nanos: Math.round((ms - seconds * 1_000) * 1e6) };
}

/** A look-up with the bytes that it takes in a request. */
export interface Sized {
  readonly size: number;
}

/** The bytes that an identifier takes in a request. Throws if it is none. */
export function sizeOf(identifier: Identifier): number {
  // Up to five bytes hold the tag and the length.
  return Identifier.encode(identifier).finish().length + 5;
}

/** Sends look-ups. */
export class Lookups {
  #maxItems = 1_000;

  constructor(private readonly caller: Caller) {}

  /** Looks one identifier up. */
  async single(query: Query, identifier: Identifier, options: UnaryOptions): Promise<Resolution> {
    const request = { ...query, identifier };
    return (await this.caller.unary(
      Directory,
      Directory.methods.resolveIdentity,
      request,
      options,
    )) as Resolution;
  }

  /** The first of the look-ups that fit into one request: at least one. */
  firstBatch<T extends Sized>(lookups: readonly T[]): T[] {
    const first = lookups.slice(0, this.#maxItems);
    let bytes = 0;
    const large = first.findIndex(({ size }, index) => (bytes += size) > MAX_BYTES && index > 0);
    return large === -1 ? first : first.slice(0, large);
  }

  /**
   * Looks a batch up: an outcome for each identifier. Undefined if the server accepts fewer of
   * them, which is known from then on.
   */
  async batch(
    query: Query,
    identifiers: readonly Identifier[],
    options: UnaryOptions,
  ): Promise<Outcome[] | undefined> {
    const method = Directory.methods.batchResolveIdentities;
    try {
      const request = { ...query, identifiers: [...identifiers] };
      const { results } = await this.caller.unary(Directory, method, request, options);
      return identifiers.map((_, index) => outcomeOf(results[index]));
    } catch (error) {
      if (this.#learnLimit(error, identifiers.length)) {
        return undefined;
      }
      throw error;
    }
  }

  /** Whether the server accepts fewer identifiers in a request than were sent. */
  #learnLimit(error: unknown, sent: number): boolean {
    const known = error instanceof InvalidArgumentError && error.reason === Reason.BATCH_TOO_LARGE;
    const limit = known ? Number(error.metadata.limit) : NaN;
    if (!(limit >= 1 && limit < sent)) {
      return false;
    }
    this.#maxItems = limit;
    return true;
  }
}

function outcomeOf(result: Result | undefined): Outcome {
  switch (result?.outcome?.$case) {
    case "found":
      return result.outcome.value as Resolution;
    case "error":
      return errorOf(ofOneItem(partsOfStatus(result.outcome.value)));
    default:
      return new InternalError({
        code: "INTERNAL",
        message: "the response of a batch lacks an item",
      });
  }
}

/** The error as the look-up of one identifier has it: a batch names `identifiers[17]`. */
function ofOneItem({ field, message, ...parts }: ErrorParts): ErrorParts {
  const item = /\bidentifiers\[\d+\]/g;
  return {
    ...parts,
    field: field?.replace(item, "identifier"),
    message: message.replace(item, "identifier"),
  };
}

/**
 * Whether the item is to be asked for again, because it did not fit into the response of its batch.
 */
export function needsRoom(outcome: Outcome): boolean {
  return (
    outcome instanceof PolynymError &&
    (isTruncated(outcome) || outcome.reason === Reason.USER_TOO_LARGE)
  );
}

/** Whether a batch of its own would have room for the item. */
export function isTruncated(outcome: Outcome): boolean {
  return outcome instanceof PolynymError && outcome.reason === Reason.ANSWER_TOO_LARGE;
}
