package com.example.signup;

import static dev.polynym.Identifiers.email;

import dev.polynym.GetOrCreateResult;
import dev.polynym.PolynymClient;
import dev.polynym.errors.PolynymException;
import dev.polynym.v1.User;
import java.util.Map;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.*;

@SpringBootApplication
public class SignUp {
  public static void main(String[] args) {
    SpringApplication.run(SignUp.class, args);
  }

  @Bean // Connected when the service begins. Spring closes it at the end.
  PolynymClient polynym() {
    return PolynymClient.connect();
  }

  record Profile(String email, String name) {}

  @RestController
  record Users(PolynymClient polynym) {
    @PostMapping("/sign-up")
    ResponseEntity<Map<String, String>> signUp(@RequestBody Profile profile) {
      User user = User.newBuilder().setDisplayName(profile.name()).build();
      GetOrCreateResult result = polynym.getOrCreate(email(profile.email()), user);
      Map<String, String> body = Map.of("id", result.user().getUserId());
      return ResponseEntity.status(result.created() ? 201 : 200).body(body);
    }

    @GetMapping("/users")
    Map<String, String> find(@RequestParam("email") String address) {
      User user = polynym.resolve(email(address)).getUser();
      return Map.of("id", user.getUserId(), "name", user.getDisplayName());
    }

    @ExceptionHandler
    ResponseEntity<Map<String, String>> failed(PolynymException error) {
      int status =
          switch (error.code()) {
            case NOT_FOUND -> 404;
            case ALREADY_EXISTS -> 409;
            case INVALID_ARGUMENT -> 400;
            case RESOURCE_EXHAUSTED -> 429;
            case UNAVAILABLE, DEADLINE_EXCEEDED -> 503;
            default -> 500;
          };
      return ResponseEntity.status(status).body(Map.of("reason", error.reason()));
    }
  }
}
