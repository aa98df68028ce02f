package dev.polynym;

import dev.polynym.errors.AlreadyExistsException;
import dev.polynym.errors.NotFoundException;
import dev.polynym.errors.Reasons;
import dev.polynym.v1.Consistency;
import dev.polynym.v1.CreateUserRequest;
import dev.polynym.v1.Identifier;
import dev.polynym.v1.Identity;
import dev.polynym.v1.User;

/** Finds the owner of an identifier, or creates it. */
record GetOrCreate(PolynymClient client, Identifier identifier, User user) {
  private static final ResolveOptions LATEST =
      ResolveOptions.defaults().consistency(Consistency.CONSISTENCY_LINEARIZABLE);

  GetOrCreateResult run() {
    ResolveOptions options = ResolveOptions.defaults();
    try {
      return found(options);
    } catch (NotFoundException absent) {
      return create();
    }
  }

  private GetOrCreateResult found(ResolveOptions options) {
    return new GetOrCreateResult(client.resolve(identifier, options).getUser(), false);
  }

  private GetOrCreateResult create() {
    CreateUserRequest request = CreateUserRequest.newBuilder().setUser(complete()).build();
    try {
      return new GetOrCreateResult(client.registry().createUser(request).getUser(), true);
    } catch (AlreadyExistsException taken) {
      if (!taken.reason().equals(Reasons.IDENTITY_TAKEN)) {
        throw taken;
      }
      return owner(taken);
    }
  }

  /** The user who was first. It has the identifier, unless another identity was taken. */
  private GetOrCreateResult owner(AlreadyExistsException taken) {
    try {
      return found(LATEST);
    } catch (NotFoundException other) {
      throw taken;
    }
  }

  private User complete() {
    boolean has =
        user.getIdentitiesList().stream().anyMatch(own -> own.getIdentifier().equals(identifier));
    Identity identity = Identity.newBuilder().setIdentifier(identifier).build();
    return has ? user : user.toBuilder().addIdentities(0, identity).build();
  }
}
