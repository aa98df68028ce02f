package dev.polynym.testing;

import dev.polynym.PolynymClient;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.lang.ProcessBuilder.Redirect;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A server with an empty store of its own, for unit tests. Its tenants are open: tests with tenants
 * of their own do not see each other's users. It ends when it is closed, and with the Java process
 * at the latest. In JUnit:
 *
 * <pre>{@code
 * @AutoClose static final PolynymServer server = PolynymServer.start();
 * @AutoClose final PolynymClient client = server.connect();
 * }</pre>
 */
public final class PolynymServer implements AutoCloseable {
  private static final long START_SECONDS = 30;
  private static final long STOP_SECONDS = 10;
  private static final Pattern GRPC = Pattern.compile("\"grpc\"\\s*:\\s*\"([^\"]+)\"");
  private static final Pattern HTTP = Pattern.compile("\"http\"\\s*:\\s*\"([^\"]+)\"");

  private final String scheme;
  private final Process process;
  private final Path log;
  private final String grpc;
  private final String http;

  private PolynymServer(Process process, Path log, String scheme) {
    this.scheme = scheme;
    this.process = process;
    this.log = log;
    try {
      String line = firstLine(process.getInputStream());
      this.grpc = address(GRPC, line);
      this.http = address(HTTP, line);
    } catch (RuntimeException failed) {
      String said = said();
      close();
      throw new IllegalStateException("the server did not start: " + said, failed);
    }
  }

  /**
   * Starts the program that {@code POLYNYM_BIN} names, else {@code polynym} on the PATH.
   *
   * @param arguments further arguments, such as {@code --credentials FILE}
   * @return the server, which accepts calls
   */
  public static PolynymServer start(String... arguments) {
    String program = System.getenv("POLYNYM_BIN");
    return start(Path.of(program == null || program.isEmpty() ? "polynym" : program), arguments);
  }

  /**
   * Starts a program.
   *
   * @param program the program {@code polynym}
   * @param arguments further arguments, such as {@code --credentials FILE}
   * @return the server, which accepts calls
   */
  public static PolynymServer start(Path program, String... arguments) {
    List<String> command = new ArrayList<>(List.of(program.toString(), "serve", "--ephemeral"));
    command.addAll(List.of(arguments));
    // Its standard input is a pipe of this process: the server ends when the pipe does.
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.environment().keySet().removeIf(name -> name.startsWith("POLYNYM_"));
    try {
      Path log = Files.createTempFile("polynym", ".log");
      builder.redirectError(Redirect.to(log.toFile()));
      String scheme = command.contains("--tls-cert") ? "https://" : "http://";
      return new PolynymServer(builder.start(), log, scheme);
    } catch (IOException missing) {
      throw new UncheckedIOException(
          "cannot start " + program + ": install it, or name it by POLYNYM_BIN", missing);
    }
  }

  /**
   * Returns the address for clients. With {@code --tls-cert}, it is {@code https://}.
   *
   * @return such as {@code http://127.0.0.1:41000}
   */
  public String address() {
    return scheme + grpc;
  }

  /**
   * Returns the address for HTTP and JSON.
   *
   * @return such as {@code http://127.0.0.1:41001}
   */
  public String httpAddress() {
    return scheme + http;
  }

  /**
   * Makes a client of this server.
   *
   * @return the client
   */
  public PolynymClient connect() {
    return PolynymClient.connect(address());
  }

  /** Stops the server, and removes its store. */
  @Override
  public void close() {
    process.destroy();
    try {
      if (!process.waitFor(STOP_SECONDS, TimeUnit.SECONDS)) {
        process.destroyForcibly();
      }
      Files.deleteIfExists(log);
    } catch (InterruptedException interrupt) {
      process.destroyForcibly();
      Thread.currentThread().interrupt();
    } catch (IOException ignored) {
      // The log stays in the temporary folder.
    }
  }

  private String said() {
    try {
      return Files.readString(log).strip();
    } catch (IOException unreadable) {
      return "its log " + log + " is unreadable";
    }
  }

  private static String address(Pattern name, String line) {
    Matcher found = name.matcher(line);
    if (!found.find()) {
      throw new IllegalStateException("it printed `" + line + "` instead of its addresses");
    }
    return found.group(1);
  }

  private static String firstLine(InputStream output) {
    BufferedReader lines =
        new BufferedReader(new InputStreamReader(output, StandardCharsets.UTF_8));
    CompletableFuture<String> line =
        CompletableFuture.supplyAsync(
            () -> {
              try {
                return String.valueOf(lines.readLine());
              } catch (IOException broken) {
                throw new UncheckedIOException(broken);
              }
            });
    try {
      return line.get(START_SECONDS, TimeUnit.SECONDS);
    } catch (InterruptedException interrupt) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("the start was interrupted", interrupt);
    } catch (ExecutionException | TimeoutException silent) {
      throw new IllegalStateException("it printed nothing", silent);
    }
  }
}
