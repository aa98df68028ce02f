package dev.polynym.internal;

import java.net.URI;
import java.net.URISyntaxException;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** The address of a server, and whether calls to it are encrypted. */
public record Address(String host, int port, boolean tls) {
  private static final Pattern LOOPBACK =
      Pattern.compile("localhost|127(\\.\\d{1,3}){3}|\\[::1]|\\[0:0:0:0:0:0:0:1]");
  private static final int DEFAULT_PORT = 7171;

  /** What follows the colon after the host, without a scheme or behind it. */
  private static final Pattern PORT =
      Pattern.compile("^(?:[^/]*://)?(?:\\[[^/]*]|[^/:]*):([^/]*)/?$");

  private static final Pattern DIGITS = Pattern.compile("[0-9]{1,5}");
  private static final int MAX_PORT = 65_535;

  /** Reads addresses, each of which may be a list with commas. All have one scheme. */
  public static List<Address> parseAll(Collection<String> texts) {
    List<Address> all =
        texts.stream()
            .flatMap(text -> Stream.of(text.split(",", -1)))
            .map(Address::parse)
            .distinct()
            .toList();
    if (all.isEmpty()) {
      throw new IllegalArgumentException("there is no server");
    }
    if (all.stream().map(Address::tls).distinct().count() > 1) {
      throw new IllegalArgumentException(
          "the servers have different schemes: write https:// for all, or http:// for all");
    }
    return all;
  }

  /**
   * Reads {@code http://HOST:PORT}, {@code https://HOST:PORT} or {@code HOST:PORT}. Without a
   * scheme, loopback hosts get plain text and all others TLS.
   */
  static Address parse(String text) {
    String address = text.strip();
    if (address.contains("@")) {
      throw new IllegalArgumentException(
          "the server must not have user information: pass a token with token()");
    }
    checkPort(address);
    boolean hasScheme = address.contains("://");
    URI uri = uri(hasScheme ? address : "none://" + address, text);
    String host = uri.getHost();
    boolean bare = uri.getRawPath().isEmpty() || uri.getRawPath().equals("/");
    if (host == null || !bare || uri.getRawQuery() != null || uri.getRawUserInfo() != null) {
      throw malformed(text);
    }
    return switch (uri.getScheme().toLowerCase(Locale.ROOT)) {
      case "http" -> new Address(host, port(uri, 80), false);
      case "https" -> new Address(host, port(uri, 443), true);
      case "none" -> new Address(host, port(uri, DEFAULT_PORT), !isLoopback(host));
      default -> throw malformed(text);
    };
  }

  private static void checkPort(String address) {
    Matcher found = PORT.matcher(address);
    if (found.find()) {
      String port = found.group(1);
      boolean valid = DIGITS.matcher(port).matches();
      if (!valid || Integer.parseInt(port) < 1 || Integer.parseInt(port) > MAX_PORT) {
        throw new IllegalArgumentException(
            "the port of a server must be a number from 1 to 65535, not \"" + port + "\"");
      }
    }
  }

  private static int port(URI uri, int otherwise) {
    return uri.getPort() < 0 ? otherwise : uri.getPort();
  }

  /** Whether calls stay on this machine. */
  public boolean isLoopback() {
    return isLoopback(host);
  }

  private static boolean isLoopback(String host) {
    return LOOPBACK.matcher(host.toLowerCase(Locale.ROOT)).matches();
  }

  /** The address as observers and errors show it. */
  @Override
  public String toString() {
    return (tls ? "https://" : "http://") + host + ":" + port;
  }

  private static URI uri(String address, String text) {
    try {
      return new URI(address);
    } catch (URISyntaxException malformed) {
      throw malformed(text);
    }
  }

  private static IllegalArgumentException malformed(String text) {
    return new IllegalArgumentException(
        "the server `" + text + "` is not http://HOST:PORT, https://HOST:PORT or HOST:PORT");
  }
}
