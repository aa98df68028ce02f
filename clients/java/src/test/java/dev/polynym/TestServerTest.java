package dev.polynym;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.polynym.testing.PolynymServer;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class TestServerTest {
  @Test
  @RequiresServer
  void itAnswersJsonToo() throws Exception {
    try (PolynymServer server = PolynymServer.start()) {
      URI method =
          URI.create(server.httpAddress() + "/polynym.v1.DirectoryService/NormalizeIdentity");
      HttpRequest request =
          HttpRequest.newBuilder(method)
              .header("content-type", "application/json")
              .POST(BodyPublishers.ofString("{\"identifier\":{\"handle\":\"@Joe\"}}"))
              .build();
      HttpResponse<String> answer =
          HttpClient.newHttpClient().send(request, BodyHandlers.ofString());
      assertEquals(200, answer.statusCode());
      assertTrue(answer.body().contains("\"joe\""), answer.body());
    }
  }

  @Test
  @RequiresServer
  void aServerThatDoesNotStartSaysWhy() {
    IllegalStateException failed =
        assertThrows(IllegalStateException.class, () -> PolynymServer.start("--no-such-flag"));
    assertTrue(failed.getMessage().contains("--no-such-flag"), failed.getMessage());
  }

  @Test
  void aMissingProgramIsNamed() {
    UncheckedIOException missing =
        assertThrows(
            UncheckedIOException.class, () -> PolynymServer.start(Path.of("/nowhere/polynym")));
    assertTrue(missing.getMessage().contains("POLYNYM_BIN"));
  }
}
