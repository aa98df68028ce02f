/** How the client makes its calls. No part of the API: it may change with any version. */
@NullMarked
package dev.polynym.internal;

import org.jspecify.annotations.NullMarked;
