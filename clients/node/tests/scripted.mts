// A server whose answers a test writes, for faults that a real server does not make at will.
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import {
  Metadata,
  Server,
  ServerCredentials,
  type ServiceDefinition,
  type UntypedServiceImplementation,
  status,
} from "@grpc/grpc-js";
import {
  AdminServiceDefinition,
  type Code,
  type ConnectOptions,
  DirectoryServiceDefinition,
  InboxServiceDefinition,
  PolynymError,
  RegistryServiceDefinition,
  connect,
} from "polynym";
import { BadRequest, ErrorInfo, RetryInfo } from "../src/gen/google/rpc/error_details.js";
import { Status } from "../src/gen/google/rpc/status.js";

/** The services of the API. */
export const SERVICES = [
  DirectoryServiceDefinition,
  RegistryServiceDefinition,
  InboxServiceDefinition,
  AdminServiceDefinition,
];

/** A call as the server sees it. */
export interface SeenCall {
  method: string;
  // Tests know the request of each method.
  request: any;
  headers: Metadata;
  cancelled: boolean;
  /** The client's end of the connection. */
  peer: string;
}

/** The answer to a call: parts of a response, a failure, or the promise of one. */
export type Script = (call: SeenCall) => unknown;

/** A failure of a call. */
export class Failure {
  readonly metadata = new Metadata();
  readonly status: Status;

  constructor(
    code: Code,
    reason?: string,
    {
      retryMs,
      field,
      metadata = {},
    }: { retryMs?: number; field?: string; metadata?: Record<string, string> } = {},
  ) {
    const any = (type: string, bytes: Uint8Array) => ({
      typeUrl: `type.googleapis.com/google.rpc.${type}`,
      value: Buffer.from(bytes),
    });
    const details = [];
    if (reason !== undefined) {
      details.push(
        any("ErrorInfo", ErrorInfo.encode({ reason, domain: "polynym", metadata }).finish()),
      );
    }
    if (retryMs !== undefined) {
      const retryDelay = {
        seconds: BigInt(Math.trunc(retryMs / 1e3)),
        nanos: (retryMs % 1e3) * 1e6,
      };
      details.push(any("RetryInfo", RetryInfo.encode({ retryDelay }).finish()));
    }
    if (field !== undefined) {
      const fieldViolations = [{ field }];
      details.push(
        any("BadRequest", BadRequest.encode(BadRequest.fromPartial({ fieldViolations })).finish()),
      );
    }
    this.status = { code: status[code], message: "a failure", details };
    if (details.length > 0) {
      this.metadata.set(
        "grpc-status-details-bin",
        Buffer.from(Status.encode(this.status).finish()),
      );
    }
  }
}

/** As a lost connection: no server says it. */
export const LOST = new Failure("UNAVAILABLE");

export const OK: Script = () => ({});
export const lost: Script = () => LOST;
export const never: Script = () => new Promise(() => {});

/** An answer that is a failure. */
export function fails(...parts: ConstructorParameters<typeof Failure>): Script {
  return () => new Failure(...parts);
}

/** A server with these answers for a test, and a client. */
export async function start(context: TestContext, scripts: Script[], options: ConnectOptions = {}) {
  const server = await scripted(...scripts);
  const client = connect(server.address, { timeoutMs: 60_000, ...options });
  context.after(() => {
    client.close();
    server.stop();
  });
  return { client, ...server };
}

/** Waits for a condition. */
export async function until(condition: () => unknown) {
  while (!(await condition())) {
    await new Promise(setImmediate);
  }
}

/** The error of a call. */
export async function failureOf(call: Promise<unknown>): Promise<PolynymError> {
  const error = await call.then(
    () => assert.fail("the call succeeds"),
    (error) => error,
  );
  assert(error instanceof PolynymError, String(error));
  return error;
}

/** Starts a server. Each call takes the next answer; the last one serves all further calls. */
export function scripted(...scripts: Script[]) {
  return scriptedAt("127.0.0.1:0", ...scripts);
}

/** The same, at this address. */
export async function scriptedAt(address: string, ...scripts: Script[]) {
  const calls: SeenCall[] = [];
  const answer = (method: string, call: any): unknown => {
    const seen: SeenCall = {
      method,
      request: call.request,
      headers: call.metadata,
      cancelled: false,
      peer: call.getPeer(),
    };
    call.on("cancelled", () => (seen.cancelled = true));
    calls.push(seen);
    return scripts[Math.min(calls.length, scripts.length) - 1]!(seen);
  };
  const server = new Server();
  for (const service of SERVICES) {
    server.addService(definitionOf(service), implementationOf(service, answer));
  }
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync(address, ServerCredentials.createInsecure(), (error, port) =>
      error ? reject(error) : resolve(port),
    ),
  );
  return {
    address: `http://${address.replace(/\d+$/, String(port))}`,
    calls,
    stop: () => server.forceShutdown(),
  };
}

type AnyService = (typeof SERVICES)[number];

function methodsOf(service: AnyService) {
  return Object.entries(service.methods as Record<string, any>);
}

function definitionOf(service: AnyService): ServiceDefinition {
  const entries = methodsOf(service).map(([name, method]) => [
    name,
    {
      path: `/${service.fullName}/${method.name}`,
      requestStream: method.requestStream,
      responseStream: method.responseStream,
      requestSerialize: (message: unknown) =>
        Buffer.from(method.requestType.encode(message).finish()),
      requestDeserialize: (bytes: Buffer) => method.requestType.decode(bytes),
      responseSerialize: (message: unknown) =>
        Buffer.from(method.responseType.encode(message).finish()),
      responseDeserialize: (bytes: Buffer) => method.responseType.decode(bytes),
    },
  ]);
  return Object.fromEntries(entries);
}

function implementationOf(
  service: AnyService,
  answer: (method: string, call: unknown) => unknown,
): UntypedServiceImplementation {
  const entries = methodsOf(service).map(([name, method]) => {
    const message = (parts: unknown) => method.responseType.fromPartial(parts);
    const unary = async (call: unknown, callback: (error: unknown, response?: unknown) => void) => {
      const result = await answer(method.name, call);
      return result instanceof Failure
        ? callback(errorOf(result))
        : callback(null, message(result));
    };
    const stream = async (call: any) => {
      for await (const result of answer(method.name, call) as AsyncIterable<unknown>) {
        if (result instanceof Failure) {
          call.emit("error", errorOf(result));
          return;
        }
        call.write(message(result));
      }
      call.end();
    };
    return [name, method.responseStream ? stream : unary];
  });
  return Object.fromEntries(entries);
}

function errorOf({ status: { code, message }, metadata }: Failure) {
  return Object.assign(new Error(message), { code, details: message, metadata });
}
