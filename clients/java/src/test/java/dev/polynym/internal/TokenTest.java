package dev.polynym.internal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TokenTest {
  @TempDir Path folder;

  @Test
  void aFileIsReadAgainWhenItChanges() throws IOException {
    AtomicLong clock = new AtomicLong();
    Path file = folder.resolve("token");
    write(file, "pn_first\n", 1);
    Token token = Token.ofFile(file, clock::get);
    assertEquals("pn_first", token.value());

    write(file, "pn_second\n", 2);
    clock.addAndGet(999_000_000);
    assertEquals("pn_first", token.value());
    clock.addAndGet(2_000_000);
    assertEquals("pn_second", token.value());

    Files.delete(file);
    clock.addAndGet(2_000_000_000);
    assertEquals("pn_second", token.value());

    write(file, "\n", 3);
    clock.addAndGet(2_000_000_000);
    assertEquals("pn_second", token.value());
  }

  @Test
  void aMissingFileIsAnErrorAtTheStart() {
    Path missing = folder.resolve("missing");
    assertThrows(UncheckedIOException.class, () -> Token.ofFile(missing, System::nanoTime));
  }

  @Test
  void aTokenIsVisibleText() {
    assertThrows(IllegalArgumentException.class, () -> Token.fixed(" "));
    assertThrows(IllegalArgumentException.class, () -> Token.fixed("pn_a\r\nx: y"));
    assertEquals("pn_a", Token.fixed("pn_a\n").value());
  }

  private static void write(Path file, String text, long second) throws IOException {
    Files.writeString(file, text);
    Files.setLastModifiedTime(file, FileTime.from(Instant.ofEpochSecond(second)));
  }
}
