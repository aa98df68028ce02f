package dev.polynym;

import io.grpc.ChannelCredentials;
import io.grpc.ClientInterceptor;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.TlsChannelCredentials;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** The settings of a {@link PolynymClient}. What is not set comes from the environment. */
public final class ClientBuilder {
  private static final String VERSION = "0.1.0";
  private static final String DEFAULT_SERVER = "http://127.0.0.1:7171";
  /** The time after which a silent server is asked, and its time to answer. */
  private static final Duration KEEP_ALIVE = Duration.ofSeconds(10);

  private static final Duration KEEP_ALIVE_TIMEOUT = Duration.ofSeconds(5);

  private final Map<String, String> environment;
  private @Nullable String server;
  private @Nullable Token token;
  private @Nullable Path ca;
  private @Nullable Path cert;
  private @Nullable Path key;
  private String tenant = "";
  private Duration timeout = Duration.ofSeconds(2);
  private int maxAttempts = 3;
  private boolean insecure;
  private Consumer<ManagedChannelBuilder<?>> channel = builder -> {};

  ClientBuilder(Map<String, String> environment) {
    this.environment = environment;
  }

  /**
   * Sets the server. Default: {@code POLYNYM_SERVER}, else {@code http://127.0.0.1:7171}.
   *
   * @param address {@code https://HOST:PORT}, {@code http://HOST:PORT} without encryption, or
   *     {@code HOST:PORT}, which is plain text on loopback and TLS elsewhere; without a port, 7171
   * @return this
   */
  public ClientBuilder server(String address) {
    server = address;
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
    token = Token.ofFile(file, System::nanoTime);
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
   * Makes the client. It connects at the first call.
   *
   * @return the client
   * @throws IllegalArgumentException if the settings contradict each other, or a token would be
   *     sent without encryption to another machine
   * @throws UncheckedIOException if a file cannot be read
   */
  public PolynymClient build() {
    String address = server == null ? setting("POLYNYM_SERVER", DEFAULT_SERVER) : server;
    Server target = Server.parse(address);
    Token credential = credential();
    if (credential != null && !target.tls() && !target.isLoopback() && !insecure) {
      throw new IllegalArgumentException(
          "the token would be sent without encryption to "
              + target.host()
              + ": use https://, or call insecure()");
    }
    ManagedChannel managed = connect(target);
    ScheduledThreadPoolExecutor timers = new ScheduledThreadPoolExecutor(1, ClientBuilder::daemon);
    timers.setRemoveOnCancelPolicy(true);
    RetryPolicy retries = new RetryPolicy(maxAttempts);
    Rules rules =
        new Rules(tenant, credential, timeout, retries, timers, new Connections(managed));
    return new PolynymClient(managed, rules);
  }

  private ManagedChannel connect(Server target) {
    ManagedChannelBuilder<?> builder =
        Grpc.newChannelBuilderForAddress(target.host(), target.port(), credentials(target))
            .userAgent("polynym-java/" + VERSION)
            // Without a service configuration, gRPC repeats only streams that no server has seen.
            .disableServiceConfigLookUp()
            .keepAliveTime(KEEP_ALIVE.toSeconds(), TimeUnit.SECONDS)
            .keepAliveTimeout(KEEP_ALIVE_TIMEOUT.toSeconds(), TimeUnit.SECONDS);
    channel.accept(builder);
    return builder.build();
  }

  private @Nullable Token credential() {
    String file = setting("POLYNYM_TOKEN_FILE", "");
    return token != null || file.isEmpty() ? token : Token.ofFile(Path.of(file), System::nanoTime);
  }

  private ChannelCredentials credentials(Server target) {
    if (!target.tls()) {
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

  private static Thread daemon(Runnable task) {
    Thread thread = new Thread(task, "polynym-timers");
    thread.setDaemon(true);
    return thread;
  }
}
