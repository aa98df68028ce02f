/**
 * The client of Polynym, a user directory: one user has many names, and any of them leads to the
 * user. Begin with {@link dev.polynym.PolynymClient}.
 */
@NullMarked
package dev.polynym;

import org.jspecify.annotations.NullMarked;
