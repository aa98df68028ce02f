/** A server for the tests of services that use Polynym. */
@NullMarked
package dev.polynym.testing;

import org.jspecify.annotations.NullMarked;
