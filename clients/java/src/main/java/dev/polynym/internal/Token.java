package dev.polynym.internal;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** The caller's token: a fixed one, or that of a file, which is read again when it changes. */
public final class Token {
  private static final long CHECK_EVERY = TimeUnit.SECONDS.toNanos(1);
  private static final Pattern VISIBLE = Pattern.compile("[\\x21-\\x7e]+");

  private final @Nullable Path file;
  private final LongSupplier nanoTime;
  private String value;
  private @Nullable FileTime modified;
  private long checked;

  private Token(@Nullable Path file, LongSupplier nanoTime, String value) {
    this.file = file;
    this.nanoTime = nanoTime;
    this.value = value;
  }

  /** A token that stays the same. */
  public static Token fixed(String value) {
    String token = value.strip();
    if (!VISIBLE.matcher(token).matches()) {
      throw new IllegalArgumentException("the token is empty or has characters that no token has");
    }
    return new Token(null, System::nanoTime, token);
  }

  /** The token of a file, which must be readable now, by a monotonic clock. */
  public static Token ofFile(Path file, LongSupplier nanoTime) {
    Token token = new Token(file, nanoTime, "");
    try {
      token.read(Files.getLastModifiedTime(file));
    } catch (IOException unreadable) {
      throw new UncheckedIOException("cannot read the token file " + file, unreadable);
    }
    if (token.value.isEmpty()) {
      throw new IllegalArgumentException("the token file " + file + " has no token");
    }
    return token;
  }

  /** The token as it is now. A file is looked at once a second at most. */
  synchronized String value() {
    long now = nanoTime.getAsLong();
    if (file != null && now - checked >= CHECK_EVERY) {
      checked = now;
      refresh(file);
    }
    return value;
  }

  private void refresh(Path changed) {
    try {
      FileTime time = Files.getLastModifiedTime(changed);
      if (!time.equals(modified)) {
        read(time);
      }
    } catch (IOException unreadable) {
      // The last token stays in use: the file may be in the middle of a replacement.
    }
  }

  private void read(FileTime time) throws IOException {
    checked = nanoTime.getAsLong();
    String content = file == null ? "" : Files.readString(file).strip();
    if (VISIBLE.matcher(content).matches()) {
      value = content;
      modified = time;
    }
  }
}
