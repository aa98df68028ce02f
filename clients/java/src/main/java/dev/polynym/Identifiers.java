package dev.polynym;

import dev.polynym.v1.Identifier;
import dev.polynym.v1.Phone;
import dev.polynym.v1.Social;

/** Makes identifiers from values as people type them. The server normalises them. */
public final class Identifiers {
  private Identifiers() {}

  /**
   * An email address.
   *
   * @param address such as {@code Joe.Smith@Example.com}
   * @return the identifier
   */
  public static Identifier email(String address) {
    return Identifier.newBuilder().setEmail(address).build();
  }

  /**
   * A user name.
   *
   * @param name such as {@code joe_99}
   * @return the identifier
   */
  public static Identifier handle(String name) {
    return Identifier.newBuilder().setHandle(name).build();
  }

  /**
   * A telephone number in international form.
   *
   * @param number such as {@code +1 415 555 2671}
   * @return the identifier
   */
  public static Identifier phone(String number) {
    return phone(number, "");
  }

  /**
   * A telephone number.
   *
   * @param number such as {@code (415) 555-2671}
   * @param region the region of a number in national form, such as {@code US}; may be empty
   * @return the identifier
   */
  public static Identifier phone(String number, String region) {
    Phone phone = Phone.newBuilder().setNumber(number).setRegion(region).build();
    return Identifier.newBuilder().setPhone(phone).build();
  }

  /**
   * An account at another provider.
   *
   * @param provider such as {@code github}
   * @param subject the stable id of the account at the provider
   * @return the identifier
   */
  public static Identifier social(String provider, String subject) {
    Social social = Social.newBuilder().setProvider(provider).setSubject(subject).build();
    return Identifier.newBuilder().setSocial(social).build();
  }

  /**
   * The address of a profile page.
   *
   * @param address such as {@code https://example.com/joe}
   * @return the identifier
   */
  public static Identifier url(String address) {
    return Identifier.newBuilder().setUrl(address).build();
  }
}
