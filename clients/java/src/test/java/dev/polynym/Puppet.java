package dev.polynym;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.protobuf.Message;
import dev.polynym.errors.OutcomeUnknownException;
import dev.polynym.errors.PolynymException;
import dev.polynym.v1.BatchResolveIdentitiesRequest;
import dev.polynym.v1.Consistency;
import dev.polynym.v1.CreateUserRequest;
import dev.polynym.v1.ListHistoryRequest;
import dev.polynym.v1.ResolveIdentityRequest;
import dev.polynym.v1.SearchUsersRequest;
import dev.polynym.v1.User;
import dev.polynym.v1.WatchRequest;
import io.grpc.stub.AbstractStub;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;

/** Takes the steps of the testbed with this client. */
final class Puppet implements AutoCloseable {
  private final ExecutorService threads = Executors.newCachedThreadPool();
  private PolynymClient client;
  private Watch watch;
  private KeptLookups loops;
  private final List<WatchEvent> watched = new ArrayList<>();

  /** Takes a step, and returns its answer. */
  JsonObject take(JsonObject step) throws Exception {
    JsonObject answer;
    try {
      answer = answer(step);
    } catch (PolynymException error) {
      answer = failed(error);
    }
    answer.add("id", step.get("id"));
    return answer;
  }

  private JsonObject answer(JsonObject step) throws Exception {
    return switch (step.get("op").getAsString()) {
      case "connect" -> connect(step);
      case "call" -> ok(call(step));
      case "resolve" -> ok(resolve(step.get("request"), step.get("timeout_ms")));
      case "resolve_concurrently" -> resolveConcurrently(step);
      case "resolve_many" -> resolveMany(step);
      case "search" -> {
        SearchUsersRequest request = SearchUsersRequest.parseFrom(bytes(step.get("request")));
        yield results(client.search(request).stream());
      }
      case "history" -> {
        ListHistoryRequest request = ListHistoryRequest.parseFrom(bytes(step.get("request")));
        yield results(client.history(request).stream());
      }
      case "watch" -> {
        endWatch();
        watch = client.watch(WatchRequest.parseFrom(bytes(step.get("request"))));
        yield new JsonObject();
      }
      case "keep_resolving" -> {
        loops = new KeptLookups(client, bytes(step.get("request")));
        yield new JsonObject();
      }
      case "kept" -> kept();
      case "get_or_create" -> getOrCreate(step);
      case "close" -> {
        client.close();
        yield new JsonObject();
      }
      case "watched" -> watched(step.get("count").getAsInt(), step.get("timeout_ms").getAsLong());
      default -> throw new IllegalArgumentException("no such step: " + step);
    };
  }

  private JsonObject connect(JsonObject step) {
    close();
    ClientBuilder builder = PolynymClient.builder().server(step.get("server").getAsString());
    if (isSet(step.get("token"))) {
      builder.token(step.get("token").getAsString());
    }
    if (isSet(step.get("tenant"))) {
      builder.tenant(step.get("tenant").getAsString());
    }
    if (isSet(step.get("timeout_ms"))) {
      builder.timeout(Duration.ofMillis(step.get("timeout_ms").getAsLong()));
    }
    if (isSet(step.get("batching"))) {
      builder.batching(step.get("batching").getAsBoolean());
    }
    client = builder.build();
    return new JsonObject();
  }

  /** Calls the method of the generated stub that has the name of the call. */
  private Message call(JsonObject step) throws Exception {
    AbstractStub<?> stub =
        switch (step.get("service").getAsString()) {
          case "DirectoryService" -> client.directory();
          case "RegistryService" -> client.registry();
          case "InboxService" -> client.inbox();
          default -> client.admin();
        };
    if (isSet(step.get("timeout_ms"))) {
      stub = stub.withDeadlineAfter(step.get("timeout_ms").getAsLong(), TimeUnit.MILLISECONDS);
    }
    String name = step.get("method").getAsString();
    String javaName = name.substring(0, 1).toLowerCase() + name.substring(1);
    Method method =
        Stream.of(stub.getClass().getMethods())
            .filter(candidate -> candidate.getName().equals(javaName))
            .findFirst()
            .orElseThrow();
    Method parse = method.getParameterTypes()[0].getMethod("parseFrom", byte[].class);
    try {
      return (Message) method.invoke(stub, parse.invoke(null, bytes(step.get("request"))));
    } catch (InvocationTargetException failed) {
      throw failed.getCause() instanceof PolynymException typed ? typed : failed;
    }
  }

  private Message resolve(JsonElement encoded, JsonElement timeout) throws Exception {
    ResolveIdentityRequest request = ResolveIdentityRequest.parseFrom(bytes(encoded));
    ResolveOptions options =
        options(
            request.getTenant(),
            request.getConsistency(),
            request.getShowDisabled(),
            request.getReadMask().getPathsList());
    if (request.hasMaxStaleness()) {
      options =
          options.maxStaleness(
              Duration.ofSeconds(
                  request.getMaxStaleness().getSeconds(), request.getMaxStaleness().getNanos()));
    }
    if (request.hasAsOf()) {
      options =
          options.asOf(
              Instant.ofEpochSecond(request.getAsOf().getSeconds(), request.getAsOf().getNanos()));
    }
    if (isSet(timeout)) {
      options = options.timeout(Duration.ofMillis(timeout.getAsLong()));
    }
    return client.resolve(request.getIdentifier(), options);
  }

  private static ResolveOptions options(
      String tenant, Consistency consistency, boolean showDisabled, List<String> fields) {
    ResolveOptions options = ResolveOptions.defaults().tenant(tenant).consistency(consistency);
    options = showDisabled ? options.showDisabled() : options;
    return fields.isEmpty() ? options : options.fields(fields.toArray(String[]::new));
  }

  private JsonObject resolveConcurrently(JsonObject step) throws Exception {
    JsonArray requests = step.getAsJsonArray("requests");
    JsonElement timeouts = step.get("timeouts_ms");
    List<Callable<JsonObject>> calls = new ArrayList<>();
    for (int n = 0; n < requests.size(); n++) {
      JsonElement request = requests.get(n);
      JsonElement timeout =
          isSet(timeouts) ? timeouts.getAsJsonArray().get(n) : JsonNull.INSTANCE;
      calls.add(() -> outcome(() -> resolve(request, timeout)));
    }
    JsonArray results = new JsonArray();
    for (Future<JsonObject> result : threads.invokeAll(calls)) {
      results.add(result.get());
    }
    return with("results", results);
  }

  private static JsonObject outcome(Callable<Message> call) throws Exception {
    try {
      return ok(call.call());
    } catch (PolynymException error) {
      return failed(error);
    }
  }

  private JsonObject resolveMany(JsonObject step) throws Exception {
    BatchResolveIdentitiesRequest request =
        BatchResolveIdentitiesRequest.parseFrom(bytes(step.get("request")));
    ResolveOptions options =
        options(
            request.getTenant(),
            request.getConsistency(),
            request.getShowDisabled(),
            request.getReadMask().getPathsList());
    JsonArray results = new JsonArray();
    for (ResolveResult result : client.resolveMany(request.getIdentifiersList(), options)) {
      results.add(outcome(result::orThrow));
    }
    return with("results", results);
  }

  private JsonObject kept() throws Exception {
    JsonObject answer = new JsonObject();
    JsonArray errors = new JsonArray();
    answer.addProperty("answers", loops.end());
    loops.errors().limit(20).forEach(error -> errors.add(failed(error).get("error")));
    answer.add("errors", errors);
    return answer;
  }

  private JsonObject getOrCreate(JsonObject step) throws Exception {
    User user = CreateUserRequest.parseFrom(bytes(step.get("request"))).getUser();
    if (!isSet(step.get("concurrency"))) {
      return getOrCreate(user);
    }
    Callable<JsonObject> call =
        () -> {
          try {
            return getOrCreate(user);
          } catch (PolynymException error) {
            return failed(error);
          }
        };
    JsonArray results = new JsonArray();
    List<Callable<JsonObject>> calls =
        Collections.nCopies(step.get("concurrency").getAsInt(), call);
    for (Future<JsonObject> result : threads.invokeAll(calls)) {
      results.add(result.get());
    }
    return with("results", results);
  }

  private JsonObject getOrCreate(User user) {
    GetOrCreateResult result = client.getOrCreate(user.getIdentities(0).getIdentifier(), user);
    JsonObject answer = ok(result.user());
    answer.addProperty("created", result.created());
    return answer;
  }

  private static JsonObject results(Stream<? extends Message> items) {
    JsonArray results = new JsonArray();
    try {
      items.forEach(item -> results.add(ok(item)));
    } catch (PolynymException error) {
      results.add(failed(error));
    }
    return with("results", results);
  }

  private JsonObject watched(int count, long timeoutMs) {
    Watch current = watch;
    Future<?> alarm =
        threads.submit(
            () -> {
              TimeUnit.MILLISECONDS.sleep(timeoutMs);
              current.close();
              return null;
            });
    PolynymException end = null;
    try {
      while (watched.size() < count && current.hasNext()) {
        watched.add(current.next());
      }
    } catch (PolynymException error) {
      end = error;
    }
    alarm.cancel(true);
    JsonObject answer = results(watched.stream().map(WatchEvent::event));
    if (end != null) {
      answer.getAsJsonArray("results").add(failed(end));
    }
    endWatch();
    return answer;
  }

  private void endWatch() {
    if (watch != null) {
      watch.close();
    }
    watch = null;
    watched.clear();
  }

  private static JsonObject ok(Message message) {
    JsonObject answer = new JsonObject();
    answer.addProperty("ok", Base64.getEncoder().encodeToString(message.toByteArray()));
    return answer;
  }

  private static JsonObject failed(PolynymException error) {
    JsonObject details = new JsonObject();
    boolean unknown = error instanceof OutcomeUnknownException;
    details.addProperty("type", unknown ? "OUTCOME_UNKNOWN" : typeName(error));
    details.addProperty("code", error.code().name());
    details.addProperty("reason", error.reason());
    details.addProperty("field", error.field());
    details.addProperty("owner", error.owner());
    details.addProperty("request_id", error.requestId());
    Duration retryAfter = error.retryAfter();
    if (retryAfter != null) {
      details.addProperty("retry_after_ms", retryAfter.toMillis());
    }
    return with("error", details);
  }

  /** The name of the exception's class as a code: {@code NotFoundException} is NOT_FOUND. */
  private static String typeName(PolynymException error) {
    String name = error.getClass().getSimpleName().replace("Exception", "");
    if (name.equals("Polynym")) {
      return error.code().name();
    }
    return name.replaceAll("(?<=[a-z])(?=[A-Z])", "_").toUpperCase();
  }

  private static JsonObject with(String name, JsonElement value) {
    JsonObject object = new JsonObject();
    object.add(name, value);
    return object;
  }

  private static byte[] bytes(JsonElement encoded) {
    return Base64.getDecoder().decode(encoded.getAsString());
  }

  private static boolean isSet(JsonElement element) {
    return element != null && !element.isJsonNull();
  }

  @Override
  public void close() {
    endWatch();
    if (client != null) {
      client.close();
    }
  }
}
