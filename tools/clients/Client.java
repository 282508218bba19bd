// A client of `paddle-rope serve`, for Java 11 or newer and Jackson, whose jars are in the folder jackson here:
//   java -cp 'jackson/*' tools/clients/Client.java http://127.0.0.1:8080/predict 浙商银行企业信贷部叶老桂博士
// The key is taken from the variable API_KEY.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

class Client {
    static final ObjectMapper JSON = new ObjectMapper();
    static final HttpClient HTTP = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    static JsonNode predict(String url, List<String> texts, String key) throws Exception {
        var body = JSON.writeValueAsBytes(Map.of("texts", texts));  // and options, such as "top_k", 5
        var request = HttpRequest.newBuilder(URI.create(url)).timeout(Duration.ofSeconds(60))
            .headers("Content-Type", "application/json", "Authorization", "Bearer " + key)
            .POST(HttpRequest.BodyPublishers.ofByteArray(body)).build();
        for (int left = 4; ; left--) {
            var response = HTTP.send(request, BodyHandlers.ofString());
            var answer = JSON.readTree(response.body());
            if (response.statusCode() == 200) return answer.get("results");
            if (response.statusCode() != 503 || left == 0)
                throw new IllegalStateException(response.statusCode() + ": " + answer.get("error").asText());
            Thread.sleep(1000 * response.headers().firstValueAsLong("Retry-After").orElse(1));
        }
    }

    public static void main(String[] args) throws Exception {
        var texts = Arrays.asList(args).subList(1, args.length);
        for (var result : predict(args[0], texts, System.getenv().getOrDefault("API_KEY", ""))) {
            String text = result.get("text").asText();
            for (var entity : result.get("entities")) {  // offsets count code points, a String UTF-16 units
                int start = text.offsetByCodePoints(0, entity.get("start").asInt());
                int end = text.offsetByCodePoints(0, entity.get("end").asInt());
                System.out.println(entity.get("type").asText() + " " + text.substring(start, end));
            }
        }
    }
}
