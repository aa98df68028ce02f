package dev.polynym;

import static dev.polynym.Identifiers.handle;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.polynym.errors.ClosedException;
import dev.polynym.errors.OutcomeUnknownException;
import dev.polynym.errors.PolynymException;
import dev.polynym.errors.Reasons;
import dev.polynym.errors.UnavailableException;
import dev.polynym.v1.CreateUserRequest;
import io.grpc.Status.Code;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class ErrorsTest {
  private static final Pattern ROW = Pattern.compile("^\\| `[A-Z_]+`[^|]*\\|([^|]+)\\|");
  private static final Pattern REASON = Pattern.compile("`([A-Z_]+)`");

  @AutoClose final ScriptedServer server = new ScriptedServer();
  @AutoClose final PolynymClient client =
      server.client().timeout(Duration.ofSeconds(20)).maxAttempts(1).build();

  ErrorsTest() throws IOException {}

  @Test
  void thereIsAConstantForEachReason() throws IOException {
    Set<String> documented = new TreeSet<>();
    for (String line : Files.readAllLines(Path.of("../../docs/api.md"))) {
      Matcher row = ROW.matcher(line);
      if (row.find()) {
        REASON.matcher(row.group(1)).results().forEach(found -> documented.add(found.group(1)));
      }
    }
    Set<String> constants =
        Arrays.stream(Reasons.class.getFields())
            .map(Field::getName)
            .collect(Collectors.toCollection(TreeSet::new));
    assertEquals(documented, constants);
  }

  @Test
  void detailsSurviveSerialization() throws Exception {
    server.fails(Code.UNAVAILABLE, Reasons.STORE_UNAVAILABLE, 1_500);
    PolynymException error =
        assertThrows(PolynymException.class, () -> client.resolve(handle("joe")));
    UnavailableException read = assertInstanceOf(UnavailableException.class, copy(error));
    assertEquals(Reasons.STORE_UNAVAILABLE, read.reason());
    assertEquals(Duration.ofMillis(1_500), read.retryAfter());
    assertEquals(error.getMessage(), read.getMessage());
    assertEquals(error.getStackTrace()[0], read.getStackTrace()[0]);

    server.fails(Code.UNAVAILABLE);
    CreateUserRequest create = CreateUserRequest.getDefaultInstance();
    OutcomeUnknownException unknown =
        assertThrows(OutcomeUnknownException.class, () -> client.registry().createUser(create));
    PolynymException sameId = assertInstanceOf(OutcomeUnknownException.class, copy(unknown));
    assertEquals(unknown.requestId(), sameId.requestId());
    assertEquals(unknown.getMessage(), sameId.getMessage());
    assertInstanceOf(ClosedException.class, copy(new ClosedException("")));
  }

  private static Object copy(Object value) throws IOException, ClassNotFoundException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (ObjectOutputStream output = new ObjectOutputStream(bytes)) {
      output.writeObject(value);
    }
    return new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray())).readObject();
  }
}
