/** The errors of calls, as unchecked exceptions: one type for each code that callers act on. */
@NullMarked
package dev.polynym.errors;

import org.jspecify.annotations.NullMarked;
