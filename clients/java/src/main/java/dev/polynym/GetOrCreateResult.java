package dev.polynym;

import dev.polynym.v1.User;

/**
 * The owner of an identifier.
 *
 * @param user the user
 * @param created whether this call has created it
 */
public record GetOrCreateResult(User user, boolean created) {}
