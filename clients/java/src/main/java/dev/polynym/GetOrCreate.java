package dev.polynym;

import dev.polynym.errors.AlreadyExistsException;
import dev.polynym.errors.NotFoundException;
import dev.polynym.errors.PolynymException;
import dev.polynym.errors.Reasons;
import dev.polynym.v1.Consistency;
import dev.polynym.v1.CreateUserRequest;
import dev.polynym.v1.Identifier;
import dev.polynym.v1.Identity;
import dev.polynym.v1.User;
import io.grpc.Deadline;
import java.time.Duration;
import java.util.concurrent.TimeUnit;

/** Finds the owner of an identifier, or creates it. All calls have one deadline. */
record GetOrCreate(PolynymClient client, Identifier identifier, User user, Deadline deadline) {
  private static final ResolveOptions LATEST =
      ResolveOptions.defaults().consistency(Consistency.CONSISTENCY_LINEARIZABLE);

  GetOrCreateResult run() {
    try {
      return found(ResolveOptions.defaults());
    } catch (NotFoundException absent) {
      require(Reasons.IDENTITY_NOT_FOUND, absent);
      return create();
    }
  }

  private GetOrCreateResult found(ResolveOptions options) {
    Duration left = Duration.ofNanos(deadline.timeRemaining(TimeUnit.NANOSECONDS));
    return new GetOrCreateResult(
        client.resolve(identifier, options.timeout(left)).getUser(), false);
  }

  private GetOrCreateResult create() {
    CreateUserRequest request = CreateUserRequest.newBuilder().setUser(complete()).build();
    try {
      User created = client.registry().withDeadline(deadline).createUser(request).getUser();
      return new GetOrCreateResult(created, true);
    } catch (AlreadyExistsException taken) {
      require(Reasons.IDENTITY_TAKEN, taken);
      return owner(taken);
    }
  }

  /** The user who was first. It has the identifier, unless another identity was taken. */
  private GetOrCreateResult owner(AlreadyExistsException taken) {
    try {
      return found(LATEST);
    } catch (NotFoundException other) {
      require(Reasons.IDENTITY_NOT_FOUND, other);
      throw taken;
    }
  }

  private static void require(String reason, PolynymException error) {
    if (!error.reason().equals(reason)) {
      throw error;
    }
  }

  private User complete() {
    boolean has =
        user.getIdentitiesList().stream().anyMatch(own -> own.getIdentifier().equals(identifier));
    Identity identity = Identity.newBuilder().setIdentifier(identifier).build();
    return has ? user : user.toBuilder().addIdentities(0, identity).build();
  }
}
