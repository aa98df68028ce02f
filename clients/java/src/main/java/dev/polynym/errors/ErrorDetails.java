package dev.polynym.errors;

import com.google.protobuf.Any;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.BadRequest;
import com.google.rpc.ErrorInfo;
import com.google.rpc.RetryInfo;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.protobuf.StatusProto;
import java.io.Serializable;
import java.time.Duration;
import java.util.Map;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** What the server says about an error beside its code and text. */
record ErrorDetails(
    String reason,
    String field,
    @Nullable Duration retryAfter,
    Map<String, String> metadata)
    implements Serializable {
  private static final String DOMAIN = "polynym";
  private static final Pattern ITEM = Pattern.compile("\\bidentifiers\\[\\d+]");
  static final ErrorDetails NONE = new ErrorDetails("", "", null, Map.of());

  static ErrorDetails of(Status status, @Nullable Metadata trailers) {
    try {
      com.google.rpc.Status details = StatusProto.fromStatusAndTrailers(status, trailers);
      return details == null ? NONE : of(details);
    } catch (IllegalArgumentException malformed) {
      return NONE;
    }
  }

  static ErrorDetails of(com.google.rpc.Status status) {
    String reason = "";
    String field = "";
    Duration retryAfter = null;
    Map<String, String> metadata = Map.of();
    try {
      for (Any detail : status.getDetailsList()) {
        if (detail.is(ErrorInfo.class)) {
          ErrorInfo info = detail.unpack(ErrorInfo.class);
          if (info.getDomain().equals(DOMAIN)) {
            reason = info.getReason();
            metadata = Map.copyOf(info.getMetadataMap());
          }
        } else if (detail.is(BadRequest.class)) {
          field = firstField(detail.unpack(BadRequest.class));
        } else if (detail.is(RetryInfo.class)) {
          retryAfter = delay(detail.unpack(RetryInfo.class));
        }
      }
    } catch (InvalidProtocolBufferException | ArithmeticException malformed) {
      return NONE;
    }
    return new ErrorDetails(reason, field, retryAfter, metadata);
  }

  /** The details of an item as those of a call of its own: its field is not that of the batch. */
  ErrorDetails ofItem() {
    return new ErrorDetails(reason, withoutIndex(field), retryAfter, metadata);
  }

  /** A text about an item, as that of a call of its own. */
  static String withoutIndex(String text) {
    return ITEM.matcher(text).replaceAll("identifier");
  }

  private static String firstField(BadRequest bad) {
    return bad.getFieldViolationsCount() == 0 ? "" : bad.getFieldViolations(0).getField();
  }

  private static Duration delay(RetryInfo info) {
    var delay = info.getRetryDelay();
    return Duration.ofSeconds(delay.getSeconds(), delay.getNanos());
  }
}
