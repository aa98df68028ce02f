package dev.polynym;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

class BuilderTest {
  @Test
  void aTokenDoesNotLeaveTheMachineInPlainText() {
    ClientBuilder builder = new ClientBuilder(Map.of()).server("http://users:7171").token("pn_x");
    Exception refused = assertThrows(IllegalArgumentException.class, builder::build);
    assertTrue(refused.getMessage().contains("users"));
    assertFalse(refused.getMessage().contains("pn_x"));
    builder.insecure().build().close();
  }

  @Test
  void settingsThatCannotBeAreRefused() throws IOException {
    Path file = Files.createTempFile("token", "");
    try {
      Files.writeString(file, "pn_x");
      ClientBuilder both = new ClientBuilder(Map.of()).token("pn_y").tokenFile(file);
      Exception refused = assertThrows(IllegalArgumentException.class, both::build);
      assertEquals("token and tokenFile exclude each other", refused.getMessage());
      Map<String, String> environment = Map.of("POLYNYM_TOKEN_FILE", file.toString());
      new ClientBuilder(environment).token("pn_y").build().close();
    } finally {
      Files.delete(file);
    }
    ClientBuilder builder = new ClientBuilder(Map.of());
    for (Duration timeout : List.of(Duration.ZERO, Duration.ofSeconds(-1))) {
      assertThrows(IllegalArgumentException.class, () -> builder.timeout(timeout));
    }
    assertThrows(IllegalArgumentException.class, builder.server()::build);
    assertThrows(IllegalArgumentException.class, builder.server("")::build);
  }

  @Test
  void theEnvironmentNamesServerAndFiles() {
    Map<String, String> environment =
        Map.of("POLYNYM_SERVER", "https://users:7171", "POLYNYM_CA", "/nowhere/ca.pem");
    Exception missing = assertThrows(Exception.class, new ClientBuilder(environment)::build);
    assertTrue(missing.getMessage().contains("authorities"));
    new ClientBuilder(environment).server("http://127.0.0.1:1").build().close();
    Map<String, String> mixed = Map.of("POLYNYM_SERVER", "https://a,http://b");
    assertThrows(IllegalArgumentException.class, new ClientBuilder(mixed)::build);
  }

  @Test
  void theVersionIsThatOfTheWorkspace() throws IOException {
    String version = first("(?m)^version = \"(.+)\"$", Path.of("../../Cargo.toml"));
    assertEquals(version, ClientBuilder.VERSION);
    assertEquals(version, first("<version>(.+)</version>", Path.of("pom.xml")));
    assertEquals(version, first("<version>(.+)</version>", Path.of("README.md")));
  }

  private static String first(String pattern, Path file) throws IOException {
    Matcher found = Pattern.compile(pattern).matcher(Files.readString(file));
    assertTrue(found.find(), file.toString());
    return found.group(1);
  }
}
