package dev.polynym;

import static dev.polynym.Identifiers.handle;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.polynym.errors.UnavailableException;
import io.grpc.Status.Code;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class ObserverTest {
  @Test
  void itSeesEachAttempt() throws IOException {
    Queue<Attempt> seen = new ConcurrentLinkedQueue<>();
    try (ScriptedServer server = new ScriptedServer();
        PolynymClient client =
            server.client().timeout(Duration.ofSeconds(20)).observer(seen::add).build()) {
      server.fails(Code.UNAVAILABLE, "STORE_UNAVAILABLE", 1);
      client.resolve(handle("joe"));

      List<Attempt> attempts = List.copyOf(seen);
      assertEquals(2, attempts.size());
      Attempt failed = attempts.get(0);
      assertEquals("polynym.v1.DirectoryService", failed.service());
      assertEquals("ResolveIdentity", failed.method());
      assertEquals(1, failed.number());
      assertEquals(Code.UNAVAILABLE, failed.code());
      assertEquals("STORE_UNAVAILABLE", failed.reason());
      assertEquals("http://127.0.0.1:" + server.port(), failed.server());
      assertEquals(2, attempts.get(1).number());
      assertEquals(Code.OK, attempts.get(1).code());
      assertTrue(attempts.get(1).duration().compareTo(Duration.ZERO) > 0);
    }
  }

  @Test
  void itsNumbersAreThoseOfAttemptsThatReachedAServer() throws IOException {
    Queue<Attempt> seen = new ConcurrentLinkedQueue<>();
    ClientBuilder builder = PolynymClient.builder().timeout(Duration.ofSeconds(1));
    try (Socket reserved = new Socket()) {
      reserved.bind(new InetSocketAddress("127.0.0.1", 0));
      String away = "http://127.0.0.1:" + reserved.getLocalPort();
      try (PolynymClient lonely = builder.server(away).observer(seen::add).build()) {
        assertThrows(UnavailableException.class, () -> lonely.resolve(handle("joe")));
      }
    }
    assertTrue(seen.size() > 1);
    assertTrue(seen.stream().allMatch(attempt -> attempt.number() == 1));
  }

  @Test
  void whatItThrowsFailsNoCall() throws IOException {
    Consumer<Attempt> broken =
        attempt -> {
          throw new IllegalStateException("broken");
        };
    try (ScriptedServer server = new ScriptedServer();
        PolynymClient client =
            server.client().timeout(Duration.ofSeconds(20)).observer(broken).build()) {
      assertEquals("joe", client.resolve(handle("joe")).getUser().getUserId());
    }
  }
}
