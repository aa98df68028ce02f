package dev.polynym;

import io.grpc.Status;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * An attempt of a call, as the {@linkplain ClientBuilder#observer observer} sees it. A stream is
 * one attempt.
 *
 * @param service such as {@code polynym.v1.DirectoryService}
 * @param method such as {@code ResolveIdentity}
 * @param number 1 for the first attempt of a call that reached a server, and for those before it
 * @param duration its time: that of a stream until its end
 * @param code its outcome
 * @param reason the reason of the server's error; empty if there is none
 * @param server such as {@code https://users:7171}, or null if none was connected
 */
public record Attempt(
    String service,
    String method,
    int number,
    Duration duration,
    Status.Code code,
    String reason,
    @Nullable String server) {}
