package dev.polynym;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ServerTest {
  @ParameterizedTest
  @CsvSource({
    "http://users:7171, users, 7171, false",
    "https://users:7171, users, 7171, true",
    "HTTPS://users/, users, 7171, true",
    "users:8080, users, 8080, true",
    "127.0.0.1:7171, 127.0.0.1, 7171, false",
    "localhost, localhost, 7171, false",
    "[::1]:7171, [::1], 7171, false",
    "[2001:db8::1]:7171, [2001:db8::1], 7171, true",
  })
  void anAddressHasAHostAPortAndAScheme(String text, String host, int port, boolean tls) {
    assertEquals(new Server(host, port, tls), Server.parse(text));
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "ftp://users", "http://", "http://users/path", "a b", "http://u@h"})
  void otherAddressesAreRefused(String text) {
    assertThrows(IllegalArgumentException.class, () -> Server.parse(text));
  }

  @Test
  void onlyLoopbackIsThisMachine() {
    assertTrue(Server.parse("http://127.8.0.1:1").isLoopback());
    assertFalse(Server.parse("http://127.0.0.1.example.com:1").isLoopback());
  }

  @Test
  void aTokenDoesNotLeaveTheMachineInPlainText() {
    ClientBuilder builder = new ClientBuilder(Map.of()).server("http://users:7171").token("pn_x");
    Exception refused = assertThrows(IllegalArgumentException.class, builder::build);
    assertTrue(refused.getMessage().contains("users"));
    assertFalse(refused.getMessage().contains("pn_x"));
    builder.insecure().build().close();
  }

  @Test
  void theEnvironmentNamesServerAndFiles() {
    Map<String, String> environment =
        Map.of("POLYNYM_SERVER", "https://users:7171", "POLYNYM_CA", "/nowhere/ca.pem");
    Exception missing = assertThrows(Exception.class, new ClientBuilder(environment)::build);
    assertTrue(missing.getMessage().contains("authorities"));
    new ClientBuilder(environment).server("http://127.0.0.1:1").build().close();
  }
}
