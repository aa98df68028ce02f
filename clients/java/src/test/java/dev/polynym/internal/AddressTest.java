package dev.polynym.internal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class AddressTest {
  @ParameterizedTest
  @CsvSource({
    "http://users:7171, users, 7171, false",
    "https://users:7171, users, 7171, true",
    "HTTPS://users/, users, 443, true",
    "http://users, users, 80, false",
    "users, users, 7171, true",
    "users:8080, users, 8080, true",
    "127.0.0.1:7171, 127.0.0.1, 7171, false",
    "localhost, localhost, 7171, false",
    "[::1]:7171, [::1], 7171, false",
    "[2001:db8::1]:7171, [2001:db8::1], 7171, true",
  })
  void anAddressHasAHostAPortAndAScheme(String text, String host, int port, boolean tls) {
    assertEquals(new Address(host, port, tls), Address.parse(text));
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "ftp://users", "http://", "http://users/path", "a b"})
  void otherAddressesAreRefused(String text) {
    assertThrows(IllegalArgumentException.class, () -> Address.parse(text));
  }

  @ParameterizedTest
  @ValueSource(strings = {"http://joe:secret@users", "joe:secret@users:x"})
  void userInformationIsRefused(String text) {
    Exception refused =
        assertThrows(IllegalArgumentException.class, () -> Address.parse(text));
    assertTrue(refused.getMessage().contains("user information"), refused.getMessage());
    assertFalse(refused.getMessage().contains("joe"), refused.getMessage());
  }

  @ParameterizedTest
  @CsvSource({
    "127.0.0.1:port, port",
    ":99999, 99999",
    "http://users:65536, 65536",
    "[::1]:0, 0",
    "users:-1, -1",
    "https://users:/, ''",
  })
  void otherPortsAreRefused(String text, String port) {
    Exception refused =
        assertThrows(IllegalArgumentException.class, () -> Address.parse(text));
    assertEquals(
        "the port of a server must be a number from 1 to 65535, not \"" + port + "\"",
        refused.getMessage());
  }

  @Test
  void onlyLoopbackIsThisMachine() {
    assertTrue(Address.parse("http://127.8.0.1:1").isLoopback());
    assertFalse(Address.parse("http://127.0.0.1.example.com:1").isLoopback());
  }

  @Test
  void aListHasOneScheme() {
    List<Address> pair = Address.parseAll(List.of("https://a:1, https://b:2", "https://c"));
    assertEquals(List.of("https://a:1", "https://b:2", "https://c:443"), texts(pair));
    assertEquals(1, Address.parseAll(List.of("http://a,http://a:80")).size());
    Exception mixed =
        assertThrows(
            IllegalArgumentException.class,
            () -> Address.parseAll(List.of("https://a", "http://b")));
    assertTrue(mixed.getMessage().contains("different schemes"), mixed.getMessage());
    assertThrows(IllegalArgumentException.class, () -> Address.parseAll(List.of("http://a,")));
    assertThrows(IllegalArgumentException.class, () -> Address.parseAll(List.of()));
  }

  private static List<String> texts(List<Address> addresses) {
    return addresses.stream().map(Address::toString).toList();
  }
}
