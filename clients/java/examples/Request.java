import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;

/** Makes requests of HTTP: each is METHOD URL BODY, and prints its status and the body. */
class Request {
  public static void main(String[] args) throws Exception {
    HttpClient client = HttpClient.newHttpClient();
    for (int at = 0; at < args.length; at += 3) {
      HttpRequest request =
          HttpRequest.newBuilder(URI.create(args[at + 1]))
              .header("content-type", "application/json")
              .method(args[at], BodyPublishers.ofString(args[at + 2]))
              .build();
      var answer = client.send(request, BodyHandlers.ofString());
      System.out.println(answer.statusCode() + " " + answer.body());
    }
  }
}
