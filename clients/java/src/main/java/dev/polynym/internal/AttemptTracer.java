package dev.polynym.internal;

import io.grpc.Attributes;
import io.grpc.ClientStreamTracer;
import io.grpc.Metadata;
import io.grpc.Status;
import org.jspecify.annotations.Nullable;

/**
 * Notes the connection of an attempt's last stream: if it got one, the server may have seen it.
 */
final class AttemptTracer extends ClientStreamTracer.Factory {
  private volatile @Nullable Attributes connection;
  private volatile boolean answered;

  @Override
  public ClientStreamTracer newClientStreamTracer(
      ClientStreamTracer.StreamInfo info, Metadata headers) {
    connection = null;
    return new ClientStreamTracer() {
      @Override
      public void streamCreated(Attributes transport, Metadata streamHeaders) {
        connection = transport;
      }

      @Override
      public void inboundTrailers(Metadata trailers) {
        answered = true;
      }
    };
  }

  /** Whether the attempt has a connection. */
  boolean isSent() {
    return connection != null;
  }

  /** Whether a server may have seen the attempt that ended so. */
  boolean hasReached(Status status) {
    return isSent() && !Failures.isRefused(status);
  }

  /** The connection with which the attempt was lost; null if only the attempt failed. */
  @Nullable Object lostWith(Status status) {
    return answered || Failures.isReset(status) ? null : connection;
  }
}
