package dev.polynym.bench;

import static dev.polynym.Identifiers.email;

import dev.polynym.PolynymClient;
import dev.polynym.testing.PolynymServer;
import dev.polynym.v1.CreateUserRequest;
import dev.polynym.v1.Identifier;
import dev.polynym.v1.User;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/**
 * Measures look-ups of many threads at the same time, with and without sharing calls. Needs
 * POLYNYM_BIN, and has the arguments CALLERS, SECONDS and ROUNDS:
 *
 * <pre>mvn -f clients/java test-compile exec:java -Dexec.classpathScope=test \
 *   -Dexec.mainClass=dev.polynym.bench.Batching -Dexec.args="256 3 4"</pre>
 */
public final class Batching {
  private static final int USERS = 2_000;

  private Batching() {}

  /**
   * Prints the look-ups a second, and the median and the 99th percentile of their times.
   *
   * @param args callers, seconds and rounds
   * @throws Exception if a look-up fails
   */
  public static void main(String[] args) throws Exception {
    int callers = Integer.parseInt(args[0]);
    int seconds = Integer.parseInt(args[1]);
    try (PolynymServer server = PolynymServer.start()) {
      load(server.address());
      System.out.println("sharing  look-ups/s  median ms  p99 ms");
      for (int round = 0; round < Integer.parseInt(args[2]); round++) {
        for (boolean sharing : new boolean[] {false, true}) {
          measure(server.address(), sharing, callers, seconds);
        }
      }
    }
  }

  private static PolynymClient client(String server, boolean sharing) {
    Duration patience = Duration.ofSeconds(20);
    return PolynymClient.builder().server(server).timeout(patience).batching(sharing).connect();
  }

  private static Identifier name(int n) {
    return email("user" + n + "@example.com");
  }

  private static void load(String server) {
    try (PolynymClient client = client(server, false)) {
      for (int n = 0; n < USERS; n++) {
        User.Builder user = User.newBuilder();
        user.addIdentitiesBuilder().setIdentifier(name(n));
        client.registry().createUser(CreateUserRequest.newBuilder().setUser(user).build());
      }
    }
  }

  private static void measure(String server, boolean sharing, int callers, int seconds)
      throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(callers);
    try (PolynymClient client = client(server, sharing)) {
      long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
      List<Future<List<Long>>> loops = new ArrayList<>();
      for (int caller = 0; caller < callers; caller++) {
        loops.add(threads.submit(() -> lookUp(client, end)));
      }
      List<Long> times = new ArrayList<>();
      for (Future<List<Long>> loop : loops) {
        times.addAll(loop.get());
      }
      print(sharing, seconds, times.stream().mapToLong(Long::longValue).sorted().toArray());
    } finally {
      threads.shutdown();
    }
  }

  private static List<Long> lookUp(PolynymClient client, long end) {
    List<Long> times = new ArrayList<>();
    for (long start = System.nanoTime(); start < end; ) {
      client.resolve(name(ThreadLocalRandom.current().nextInt(USERS)));
      long now = System.nanoTime();
      times.add(now - start);
      start = now;
    }
    return times;
  }

  private static void print(boolean sharing, int seconds, long[] times) {
    double rate = (double) times.length / seconds;
    double median = times[times.length / 2] / 1e6;
    double p99 = times[(int) (times.length * 0.99)] / 1e6;
    String line = "%7b %11.0f %10.2f %7.2f";
    System.out.println(String.format(Locale.ROOT, line, sharing, rate, median, p99));
  }
}
