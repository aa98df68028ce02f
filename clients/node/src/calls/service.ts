// The shapes of generated services.
import type { CallOptions } from "../options.js";

/** The codec of a message. */
export interface Codec {
  encode(message: never): { finish(): Uint8Array };
  decode(bytes: Uint8Array): unknown;
  fromPartial(parts: never): object;
}

/** A method of a generated service. */
export interface Method {
  readonly name: string;
  readonly requestType: Codec;
  readonly requestStream: boolean;
  readonly responseType: Codec;
  readonly responseStream: boolean;
  readonly options: { readonly idempotencyLevel?: string };
}

/** A generated service. */
export interface Service {
  readonly fullName: string;
  readonly methods: Readonly<Record<string, Method>>;
}

/** The request of a method: what it leaves out has its default. */
export type Request<M extends Method> = M["requestType"] extends {
  fromPartial(parts: infer P): unknown;
}
  ? P
  : never;

/** The response of a method. */
export type Response<M extends Method> = M["responseType"] extends {
  fromPartial(parts: never): infer R;
}
  ? R
  : never;

/** A function for each method of a service. */
export type Stub<S extends Service> = {
  readonly [K in keyof S["methods"]]: S["methods"][K] extends { requestStream: true }
    ? (
        requests: AsyncIterable<Request<S["methods"][K]>> | Iterable<Request<S["methods"][K]>>,
        options?: CallOptions,
      ) => AsyncIterableIterator<Response<S["methods"][K]>>
    : S["methods"][K] extends { responseStream: true }
      ? (
          request: Request<S["methods"][K]>,
          options?: CallOptions,
        ) => AsyncIterableIterator<Response<S["methods"][K]>>
      : (
          request: Request<S["methods"][K]>,
          options?: CallOptions,
        ) => Promise<Response<S["methods"][K]>>;
};
