package dev.polynym.internal;

import dev.polynym.errors.PolynymException;
import io.grpc.Metadata;
import io.grpc.Status;
import java.util.List;
import java.util.regex.Pattern;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;

/** The errors of calls that got no answer of the server, in plain words. */
final class Failures {
  /** The messages of gRPC for streams that the server refused, or had not seen at its GOAWAY. */
  private static final Pattern REFUSED =
      Pattern.compile("REFUSED_STREAM|GOAWAY closed (un)?sent stream");

  /** Says that no server can be reached. */
  private final String unreachable;

  /** The errors of calls to these servers, each as {@code HOST:PORT}. */
  Failures(List<String> servers) {
    String names = String.join(", ", servers);
    unreachable =
        servers.size() == 1
            ? "the server " + names + " cannot be reached"
            : "none of the servers " + names + " can be reached";
  }

  /** The typed error of a status. The exception of gRPC becomes the cause. */
  PolynymException of(
      Status status, @Nullable Metadata trailers, String requestId, boolean reached) {
    PolynymException error = PolynymException.of(status, trailers, requestId);
    if (!error.reason().isEmpty()) {
      return error;
    }
    return PolynymException.of(plain(status, reached), trailers, requestId);
  }

  /** The same error as the loss of a connection, whatever gRPC calls it. */
  PolynymException connectionLost(PolynymException error, boolean reached) {
    Status lost = Status.UNAVAILABLE.withDescription(connection(error.getStatus(), reached));
    return PolynymException.of(
        lost.withCause(error.getCause()), error.getTrailers(), error.requestId());
  }

  /** The error of an attempt that found no connected server. */
  Status unreachable() {
    return Status.UNAVAILABLE.withDescription(unreachable);
  }

  /** Whether a call has failed because it reached no server in its time. */
  boolean isUnreachable(PolynymException error) {
    String text = error.getStatus().getDescription();
    boolean isOurs = error.reason().isEmpty() && error.code() == Status.Code.UNAVAILABLE;
    return isOurs && text != null && text.startsWith(unreachable);
  }

  /** Whether the server has not looked at the stream that ended so. */
  static boolean isRefused(Status status) {
    String text = status.getDescription();
    return text != null && REFUSED.matcher(text).find();
  }

  /** Whether the stream alone has ended, not its connection. */
  static boolean isReset(Status status) {
    String text = status.getDescription();
    return text != null && text.contains("STREAM closed stream");
  }

  private Status plain(Status status, boolean reached) {
    String text =
        switch (status.getCode()) {
          case UNAVAILABLE -> connection(status, reached);
          case DEADLINE_EXCEEDED -> "the deadline has passed";
          case CANCELLED -> "the call was cancelled";
          case RESOURCE_EXHAUSTED -> "the answer is larger than the client accepts";
          case UNAUTHENTICATED, PERMISSION_DENIED, UNIMPLEMENTED ->
              "the call was refused on its way to the server";
          default -> "the call failed without an answer of the server";
        };
    return status.withDescription(text).withCause(status.asRuntimeException());
  }

  private String connection(Status status, boolean reached) {
    if (reached) {
      return "the connection to the server was lost";
    }
    for (Throwable cause = status.getCause(); cause != null; cause = cause.getCause()) {
      if (cause instanceof SSLException) {
        return unreachable + ": encryption failed, or a certificate is not trusted";
      }
    }
    return unreachable;
  }
}
