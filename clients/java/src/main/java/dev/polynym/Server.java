package dev.polynym;

import java.net.URI;
import java.net.URISyntaxException;
import java.util.Locale;
import java.util.regex.Pattern;

/** The address of a server, and whether calls to it are encrypted. */
record Server(String host, int port, boolean tls) {
  private static final Pattern LOOPBACK =
      Pattern.compile("localhost|127(\\.\\d{1,3}){3}|\\[::1]|\\[0:0:0:0:0:0:0:1]");
  private static final int DEFAULT_PORT = 7171;

  /**
   * Reads {@code http://HOST:PORT}, {@code https://HOST:PORT} or {@code HOST:PORT}. Without a
   * scheme, loopback hosts get plain text and all others TLS.
   */
  static Server parse(String text) {
    String address = text.strip();
    boolean hasScheme = address.contains("://");
    URI uri = uri(hasScheme ? address : "none://" + address, text);
    String scheme = uri.getScheme().toLowerCase(Locale.ROOT);
    String host = uri.getHost();
    boolean bare = uri.getRawPath().isEmpty() || uri.getRawPath().equals("/");
    if (host == null || !bare || uri.getRawQuery() != null || uri.getRawUserInfo() != null) {
      throw malformed(text);
    }
    boolean tls =
        switch (scheme) {
          case "http" -> false;
          case "https" -> true;
          case "none" -> !isLoopback(host);
          default -> throw malformed(text);
        };
    return new Server(host, uri.getPort() < 0 ? DEFAULT_PORT : uri.getPort(), tls);
  }

  /** Whether calls stay on this machine. */
  boolean isLoopback() {
    return isLoopback(host);
  }

  private static boolean isLoopback(String host) {
    return LOOPBACK.matcher(host.toLowerCase(Locale.ROOT)).matches();
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
