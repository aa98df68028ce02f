package dev.polynym;

import dev.polynym.internal.Address;
import dev.polynym.internal.RetryPolicy;
import dev.polynym.internal.Rules;
import dev.polynym.internal.ServerConnection;
import dev.polynym.internal.Servers;
import dev.polynym.internal.Token;
import io.grpc.ChannelCredentials;
import io.grpc.ClientInterceptor;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannelBuilder;
import io.grpc.TlsChannelCredentials;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** The settings of a {@link PolynymClient}. What is not set comes from the environment. */
public final class ClientBuilder {
  static final String VERSION = "0.2.0";
  private static final String DEFAULT_SERVER = "http://127.0.0.1:7171";
  /** The time after which a silent server is asked, and its time to answer. */
  private static final Duration KEEP_ALIVE = Duration.ofSeconds(10);

  private static final Duration KEEP_ALIVE_TIMEOUT = Duration.ofSeconds(5);

  private final Map<String, String> environment;
  private @Nullable List<String> servers;
  private @Nullable Token token;
  private @Nullable Token tokenFile;
  private @Nullable Path ca;
  private @Nullable Path cert;
  private @Nullable Path key;
  private String tenant = "";
  private Duration timeout = Duration.ofSeconds(2);
  private int maxAttempts = 3;
  private boolean waitForReady = true;
  private Duration firstWait = Duration.ofMillis(50);
  private Duration longestWait = Duration.ofSeconds(1);
  private boolean batching = true;
  private Duration stalledAfter = Duration.ofMillis(100);
  private @Nullable Consumer<Attempt> observer;
  private boolean insecure;
  private Consumer<ManagedChannelBuilder<?>> channel = builder -> {};

  ClientBuilder(Map<String, String> environment) {
    this.environment = environment;
  }

  /**
   * Sets the server, or several of one store. Calls take turns among those that are connected.
   * Default: {@code POLYNYM_SERVER}, else {@code http://127.0.0.1:7171}.
   *
   * @param addresses each {@code https://HOST:PORT}, {@code http://HOST:PORT} without encryption,
   *     or {@code HOST:PORT}, which is plain text on loopback and TLS elsewhere; or a list of these
   *     with commas. The port may be absent: it is 443, 80 or, without a scheme, 7171
   * @return this
   */
  public ClientBuilder server(String... addresses) {
    servers = List.of(addresses);
    return this;
  }

  /**
   * Sets the caller's token.
   *
   * @param value the token
   * @return this
   */
  public ClientBuilder token(String value) {
    token = Token.fixed(value);
    return this;
  }

  /**
   * Sets the file of the caller's token, which is read again when it changes. Default: {@code
   * POLYNYM_TOKEN_FILE}.
   *
   * @param file the file
   * @return this
   */
  public ClientBuilder tokenFile(Path file) {
    tokenFile = Token.ofFile(file, System::nanoTime);
    return this;
  }

  /**
   * Sets the authorities that sign servers' certificates. Default: {@code POLYNYM_CA}, else the
   * system's.
   *
   * @param file a PEM file
   * @return this
   */
  public ClientBuilder ca(Path file) {
    ca = file;
    return this;
  }

  /**
   * Sets the client's certificate.
   *
   * @param certFile its PEM file
   * @param keyFile the PEM file of its private key
   * @return this
   */
  public ClientBuilder certificate(Path certFile, Path keyFile) {
    cert = certFile;
    key = keyFile;
    return this;
  }

  /**
   * Sets the tenant of all requests that name none.
   *
   * @param name the tenant
   * @return this
   */
  public ClientBuilder tenant(String name) {
    tenant = name;
    return this;
  }

  /**
   * Sets the time for a unary call with all its attempts, unless the call sets a deadline of its
   * own. Default: 2 seconds.
   *
   * @param time the time
   * @return this
   */
  public ClientBuilder timeout(Duration time) {
    if (time.isNegative() || time.isZero()) {
      throw new IllegalArgumentException("the timeout must be greater than zero");
    }
    timeout = time;
    return this;
  }

  /**
   * Sets the maximum number of attempts of a unary call. Default: 3; 1 turns retries off.
   *
   * @param attempts the number
   * @return this
   */
  public ClientBuilder maxAttempts(int attempts) {
    if (attempts < 1) {
      throw new IllegalArgumentException("a call has at least one attempt");
    }
    maxAttempts = attempts;
    return this;
  }

  /**
   * Sets whether calls wait for a server that cannot be reached, until their deadlines. Default:
   * true.
   *
   * @param wait false if they fail at once
   * @return this
   */
  public ClientBuilder waitForReady(boolean wait) {
    waitForReady = wait;
    return this;
  }

  /**
   * Sets how long a call waits before it tries again to reach a server. Default: 50 ms, doubling up
   * to 1 second.
   *
   * @param first the first wait
   * @param longest the longest one
   * @return this
   */
  public ClientBuilder connectBackoff(Duration first, Duration longest) {
    if (first.isNegative() || first.isZero() || longest.compareTo(first) < 0) {
      throw new IllegalArgumentException("the waits must be greater than zero, and not shrink");
    }
    firstWait = first;
    longestWait = longest;
    return this;
  }

  /**
   * Sets whether concurrent look-ups share calls. Default: true.
   *
   * @param share false if each look-up is a call
   * @return this
   */
  public ClientBuilder batching(boolean share) {
    batching = share;
    return this;
  }

  /** Sets the time after which a call holds up no other look-ups. */
  ClientBuilder stalledAfter(Duration time) {
    stalledAfter = time;
    return this;
  }

  /**
   * Sets what is called after each attempt of a call, such as for logs and metrics. A stream is one
   * attempt, which ends with it. The function must be quick, and for all threads. Its exceptions
   * are logged, and fail no call.
   *
   * @param function gets the attempt
   * @return this
   */
  public ClientBuilder observer(Consumer<Attempt> function) {
    observer = observer == null ? function : observer.andThen(function);
    return this;
  }

  /**
   * Sends the token without encryption to another machine, where the network between is private.
   *
   * @return this
   */
  public ClientBuilder insecure() {
    insecure = true;
    return this;
  }

  /**
   * Adds an interceptor that sees each attempt, such as one for telemetry.
   *
   * @param interceptor the interceptor
   * @return this
   */
  public ClientBuilder intercept(ClientInterceptor interceptor) {
    return channel(builder -> builder.intercept(interceptor));
  }

  /**
   * Changes settings of the gRPC channel.
   *
   * @param change gets the channel's builder
   * @return this
   */
  public ClientBuilder channel(Consumer<ManagedChannelBuilder<?>> change) {
    channel = channel.andThen(change);
    return this;
  }

  /**
   * Makes the client. It connects at the first call; {@link #connect} does so at once.
   *
   * @return the client
   * @throws IllegalArgumentException if the settings contradict each other, or a token would be
   *     sent without encryption to another machine
   * @throws UncheckedIOException if a file cannot be read
   */
  public PolynymClient build() {
    List<String> named = servers;
    List<Address> targets =
        Address.parseAll(
            named == null ? List.of(setting("POLYNYM_SERVER", DEFAULT_SERVER)) : named);
    Token credential = credential();
    if (credential != null && !insecure) {
      targets.forEach(ClientBuilder::requireEncryption);
    }
    ChannelCredentials credentials = credentials(targets.get(0).tls());
    Servers connections =
        new Servers(targets.stream().map(target -> open(target, credentials)).toList());
    RetryPolicy retries = new RetryPolicy(maxAttempts, waitForReady, firstWait, longestWait);
    Rules rules = new Rules(connections, tenant, credential, timeout, retries, observer);
    return new PolynymClient(rules, batching, stalledAfter);
  }

  /**
   * Makes the client and connects it, so that its first call is as fast as any.
   *
   * @return the client
   * @throws dev.polynym.errors.PolynymException if no server can be reached within the timeout
   * @throws IllegalArgumentException as {@link #build}
   * @throws UncheckedIOException as {@link #build}
   */
  public PolynymClient connect() {
    PolynymClient client = build();
    try {
      client.connectNow();
      return client;
    } catch (RuntimeException failed) {
      client.close();
      throw failed;
    }
  }

  private static void requireEncryption(Address target) {
    if (!target.tls() && !target.isLoopback()) {
      throw new IllegalArgumentException(
          "the token would be sent without encryption to "
              + target.host()
              + ": use https://, or call insecure()");
    }
  }

  private ServerConnection open(Address target, ChannelCredentials credentials) {
    ManagedChannelBuilder<?> builder =
        Grpc.newChannelBuilderForAddress(target.host(), target.port(), credentials)
            .userAgent("polynym-java/" + VERSION)
            // All addresses of a host name are servers.
            .defaultLoadBalancingPolicy("round_robin")
            // Without a service configuration, gRPC repeats only streams that no server has seen.
            .disableServiceConfigLookUp()
            .keepAliveTime(KEEP_ALIVE.toSeconds(), TimeUnit.SECONDS)
            .keepAliveTimeout(KEEP_ALIVE_TIMEOUT.toSeconds(), TimeUnit.SECONDS);
    channel.accept(builder);
    return new ServerConnection(target.toString(), builder.build());
  }

  private @Nullable Token credential() {
    if (token != null && tokenFile != null) {
      throw new IllegalArgumentException("token and tokenFile exclude each other");
    }
    Token named = token == null ? tokenFile : token;
    String file = setting("POLYNYM_TOKEN_FILE", "");
    return named != null || file.isEmpty() ? named : Token.ofFile(Path.of(file), System::nanoTime);
  }

  private ChannelCredentials credentials(boolean encrypted) {
    if (!encrypted) {
      if (cert != null) {
        throw new IllegalArgumentException("a client certificate needs a server with https://");
      }
      return InsecureChannelCredentials.create();
    }
    String authorities = ca == null ? setting("POLYNYM_CA", "") : ca.toString();
    try {
      TlsChannelCredentials.Builder tls = TlsChannelCredentials.newBuilder();
      if (!authorities.isEmpty()) {
        tls.trustManager(Path.of(authorities).toFile());
      }
      if (cert != null && key != null) {
        tls.keyManager(cert.toFile(), key.toFile());
      }
      return tls.build();
    } catch (IOException unreadable) {
      throw new UncheckedIOException("cannot read the authorities or the certificate", unreadable);
    }
  }

  private String setting(String name, String otherwise) {
    String value = environment.getOrDefault(name, "");
    return value.isEmpty() ? otherwise : value;
  }
}
