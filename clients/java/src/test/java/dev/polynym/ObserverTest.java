package dev.polynym;

import static dev.polynym.Identifiers.handle;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.grpc.Status.Code;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
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
}
