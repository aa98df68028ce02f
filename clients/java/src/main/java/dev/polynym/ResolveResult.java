package dev.polynym;

import dev.polynym.errors.PolynymException;
import dev.polynym.v1.BatchResolveIdentitiesResponse.Found;
import org.jspecify.annotations.Nullable;

/**
 * The result for one of many identifiers: its owner, or the error with which it would have failed
 * alone. Exactly one is set.
 *
 * @param found the owner, or null
 * @param error the error, or null
 */
public record ResolveResult(@Nullable Found found, @Nullable PolynymException error) {
  /**
   * Returns the owner, or throws the error.
   *
   * @return the owner
   * @throws PolynymException if the identifier did not resolve
   */
  public Found orThrow() {
    if (error != null) {
      throw error;
    }
    return found == null ? Found.getDefaultInstance() : found;
  }
}
