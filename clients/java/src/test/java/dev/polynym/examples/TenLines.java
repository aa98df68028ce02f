package dev.polynym.examples;

import static dev.polynym.Identifiers.email;

import dev.polynym.PolynymClient;
import dev.polynym.errors.AlreadyExistsException;
import dev.polynym.v1.CreateUserRequest;
import dev.polynym.v1.Identity;
import dev.polynym.v1.User;

/** The lines of the page, against the server that the argument names. */
public final class TenLines {
  private TenLines() {}

  /**
   * Registers a user, and finds it by its email address.
   *
   * @param args the server
   */
  public static void main(String[] args) {
    // begin
    try (PolynymClient client = PolynymClient.connect(args[0])) {
      Identity mail = Identity.newBuilder().setIdentifier(email("Joe.Smith@Example.com")).build();
      User.Builder joe = User.newBuilder().setDisplayName("Joe").addIdentities(mail);
      client.registry().createUser(CreateUserRequest.newBuilder().setUser(joe).build());

      User found = client.resolve(email("joe.smith@example.com")).getUser();
      System.out.println(found.getDisplayName() + " is " + found.getUserId());
    } catch (AlreadyExistsException taken) {
      System.out.println("The address belongs to " + taken.owner());
    }
    // end
  }
}
