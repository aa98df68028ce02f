package dev.polynym;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.Writer;
import java.lang.ProcessBuilder.Redirect;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledIf;

/**
 * The scenarios of all clients: clients/scenarios.json, run by the program client-testbed. {@code
 * -Dscenario=TEXT} chooses those with this text in their names.
 */
@Timeout(300)
@EnabledIf(
    value = "hasTestbed",
    disabledReason = "POLYNYM_TESTBED names no client-testbed, and the checkout has built none")
class TestbedTest {
  private final Puppet puppet = new Puppet();

  private static Path testbed() {
    String named = System.getenv("POLYNYM_TESTBED");
    if (named != null && !named.isEmpty()) {
      return Path.of(named);
    }
    return Stream.of("debug", "release")
        .map(profile -> Path.of("../../target", profile, "client-testbed"))
        .filter(Files::isExecutable)
        .findFirst()
        .orElse(null);
  }

  static boolean hasTestbed() {
    return testbed() != null;
  }

  @Test
  void allScenariosPass() throws Exception {
    Path log = Files.createTempFile("testbed", ".log");
    Process testbed =
        new ProcessBuilder(testbed().toString(), System.getProperty("scenario", ""))
            .redirectError(Redirect.to(log.toFile()))
            .start();
    try {
      takeSteps(testbed);
      assertEquals(0, testbed.waitFor(), () -> read(log));
    } finally {
      testbed.destroyForcibly();
      System.out.print(read(log));
      Files.delete(log);
    }
  }

  private void takeSteps(Process testbed) throws Exception {
    try (BufferedReader steps = testbed.inputReader(StandardCharsets.UTF_8);
        Writer answers = testbed.outputWriter(StandardCharsets.UTF_8)) {
      for (String step = steps.readLine(); step != null; step = steps.readLine()) {
        JsonObject answer = puppet.take(JsonParser.parseString(step).getAsJsonObject());
        answers.write(answer + "\n");
        answers.flush();
      }
    }
  }

  private static String read(Path log) {
    try {
      return Files.readString(log);
    } catch (IOException unreadable) {
      return unreadable.toString();
    }
  }

  @AfterEach
  void closeTheClient() {
    puppet.close();
  }
}
