package dev.polynym;

import static dev.polynym.Identifiers.handle;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.polynym.errors.NotFoundException;
import dev.polynym.errors.PermissionDeniedException;
import dev.polynym.errors.UnauthenticatedException;
import dev.polynym.errors.UnavailableException;
import dev.polynym.testing.PolynymServer;
import dev.polynym.v1.CreateUserRequest;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.KeyStore;
import java.time.Duration;
import java.util.Base64;
import java.util.List;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** TLS, tokens and client certificates, on a server that requires them. */
@RequiresServer
@Timeout(120)
class CredentialsTest {
  private static final String PASSWORD = "password";

  @TempDir static Path folder;

  private static Path certificate;
  private static Path key;
  private static Path tokenFile;
  @AutoClose private static PolynymServer server;

  @BeforeAll
  static void startServer() throws Exception {
    makeCertificate();
    Path callers = folder.resolve("callers.toml");
    tokenFile = folder.resolve("billing.token");
    List<String> create = List.of("token", "create", "billing", "--role", "resolver");
    Files.writeString(tokenFile, run(System.getenv("POLYNYM_BIN"), create, callers));
    String byCertificate =
        """

        [[caller]]
        name = "audit"
        role = "viewer"
        tenants = ["*"]
        certificate = "dns:audit.corp"
        """;
    Files.writeString(callers, byCertificate, StandardOpenOption.APPEND);

    server =
        PolynymServer.start(
            "--credentials", callers.toString(),
            "--tls-cert", certificate.toString(),
            "--tls-key", key.toString(),
            "--tls-client-ca", certificate.toString(),
            "--tls-client-auth", "optional");
  }

  private static String run(String program, List<String> arguments, Path callers)
      throws IOException {
    ProcessBuilder command = new ProcessBuilder(program);
    command.command().addAll(arguments);
    command.command().addAll(List.of("--credentials", callers.toString()));
    Process process = command.redirectError(ProcessBuilder.Redirect.INHERIT).start();
    return new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
  }

  /** A self-signed certificate, of this host as a server and of {@code audit.corp} as a client. */
  private static void makeCertificate() throws Exception {
    Path store = folder.resolve("store.p12");
    Process keytool =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "keytool").toString(),
                "-genkeypair", "-keyalg", "RSA", "-alias", "own", "-dname", "CN=polynym",
                "-ext", "san=ip:127.0.0.1,dns:audit.corp", "-storetype", "PKCS12",
                "-keystore", store.toString(), "-storepass", PASSWORD)
            .redirectErrorStream(true)
            .start();
    String said = new String(keytool.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertEquals(0, keytool.waitFor(), said);

    KeyStore keys = KeyStore.getInstance(store.toFile(), PASSWORD.toCharArray());
    byte[] privateKey = keys.getKey("own", PASSWORD.toCharArray()).getEncoded();
    certificate = pem("cert.pem", "CERTIFICATE", keys.getCertificate("own").getEncoded());
    key = pem("key.pem", "PRIVATE KEY", privateKey);
  }

  private static Path pem(String name, String label, byte[] content) throws IOException {
    String text = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(content);
    String pem = "-----BEGIN %1$s-----%n%2$s%n-----END %1$s-----%n".formatted(label, text);
    return Files.writeString(folder.resolve(name), pem);
  }

  private static ClientBuilder builder() {
    return PolynymClient.builder().server(server.address()).timeout(Duration.ofSeconds(20));
  }

  @Test
  void aTokenFileIdentifiesTheCaller() {
    try (PolynymClient billing = builder().ca(certificate).tokenFile(tokenFile).build()) {
      assertThrows(NotFoundException.class, () -> billing.resolve(handle("joe")));
      assertThrows(
          PermissionDeniedException.class,
          () -> billing.registry().createUser(CreateUserRequest.getDefaultInstance()));
    }
  }

  @Test
  void aCertificateIdentifiesTheCaller() {
    ClientBuilder withCertificate = builder().ca(certificate).certificate(certificate, key);
    try (PolynymClient audit = withCertificate.build()) {
      assertThrows(NotFoundException.class, () -> audit.resolve(handle("joe")));
    }
  }

  @Test
  void withoutACredentialThereIsNoAnswer() {
    try (PolynymClient nobody = builder().ca(certificate).build()) {
      assertThrows(UnauthenticatedException.class, () -> nobody.resolve(handle("joe")));
    }
  }

  @Test
  void anUnknownAuthorityIsNotTrusted() {
    ClientBuilder builder = builder().tokenFile(tokenFile).waitForReady(false);
    UnavailableException refused = assertThrows(UnavailableException.class, builder::connect);
    assertTrue(refused.getMessage().contains("certificate is not trusted"), refused.getMessage());
  }
}
