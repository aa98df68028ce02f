package dev.polynym;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.polynym.examples.TenLines;
import dev.polynym.testing.PolynymServer;
import dev.polynym.v1.User;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The example of the page: README.md has the lines of the example, and they run. */
class PageTest {
  private static final Path EXAMPLE =
      Path.of("src/test/java/dev/polynym/examples/TenLines.java");

  @Test
  void thePageHasTheLinesOfTheExample() throws IOException {
    List<String> lines = Files.readAllLines(EXAMPLE);
    int begin = lines.indexOf("    // begin");
    int end = lines.indexOf("    // end");
    String example = String.join("\n", lines.subList(begin + 1, end)).stripIndent();
    String page = Files.readString(Path.of("README.md"));
    assertTrue(page.contains("```java\n" + example + "\n```"), example);
  }

  @Test
  @RequiresServer
  void theExampleRunsTwice() {
    try (PolynymServer server = PolynymServer.start();
        PolynymClient client = patient(server)) {
      assertEquals(0, client.search("").stream().count());
      String first = run(server);
      User joe = client.resolve(Identifiers.email("joe.smith@example.com")).getUser();
      assertEquals("Joe is " + joe.getUserId(), first);
      assertEquals("The address belongs to " + joe.getUserId(), run(server));
    }
  }

  /** A client that waits until this JVM has loaded its classes, so that the example need not. */
  private static PolynymClient patient(PolynymServer server) {
    Duration patience = Duration.ofSeconds(20);
    return PolynymClient.builder().server(server.address()).timeout(patience).build();
  }

  private static String run(PolynymServer server) {
    PrintStream before = System.out;
    ByteArrayOutputStream output = new ByteArrayOutputStream();
    System.setOut(new PrintStream(output, true, StandardCharsets.UTF_8));
    try {
      TenLines.main(new String[] {server.address()});
    } finally {
      System.setOut(before);
    }
    return output.toString(StandardCharsets.UTF_8).strip();
  }
}
