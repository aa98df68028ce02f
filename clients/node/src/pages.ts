// Lists that the server sends in pages.
import type { CallOptions } from "./options.js";

/** A list's request and response. */
interface PageRequest {
  pageToken?: string;
}
interface Page {
  nextPageToken: string;
}

type Item<List> = List extends readonly (infer T)[] ? T : never;

/**
 * The items of all pages, from that of the request's token on. Each page has a deadline of its own.
 */
export async function* itemsOf<Q extends PageRequest, R extends Page, K extends keyof R>(
  list: (request: Q, options?: CallOptions) => Promise<R>,
  items: K,
  request: Q,
  options?: CallOptions,
): AsyncGenerator<Item<R[K]>, void, undefined> {
  let { pageToken } = request;
  do {
    const page = await list({ ...request, pageToken }, options);
    yield* page[items] as Item<R[K]>[];
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
}
