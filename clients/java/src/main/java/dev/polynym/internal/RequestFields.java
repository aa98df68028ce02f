package dev.polynym.internal;

import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Descriptors.FieldDescriptor.JavaType;
import com.google.protobuf.Message;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/** The fields of requests that the client fills in, found by their names in the descriptors. */
final class RequestFields {
  private static final String TENANT = "tenant";
  private static final String REQUEST_ID = "request_id";

  private RequestFields() {}

  /** The request with the default tenant and a new request id, where it has these fields empty. */
  static <T> T completed(T request, String tenant) {
    if (!(request instanceof Message message)) {
      return request;
    }
    Message.@Nullable Builder builder = null;
    FieldDescriptor tenantField = text(message, TENANT);
    if (tenantField != null && !tenant.isEmpty() && value(message, tenantField).isEmpty()) {
      builder = message.toBuilder().setField(tenantField, tenant);
    }
    FieldDescriptor idField = text(message, REQUEST_ID);
    if (idField != null && value(message, idField).isEmpty()) {
      builder = builder == null ? message.toBuilder() : builder;
      builder.setField(idField, UUID.randomUUID().toString());
    }
    return builder == null ? request : sameType(request, builder.build());
  }

  /** The request id of a request; empty if it has none. */
  static String requestId(Object request) {
    if (request instanceof Message message) {
      FieldDescriptor field = text(message, REQUEST_ID);
      return field == null ? "" : value(message, field);
    }
    return "";
  }

  private static @Nullable FieldDescriptor text(Message message, String name) {
    FieldDescriptor field = message.getDescriptorForType().findFieldByName(name);
    boolean plain =
        field != null
            && !field.isRepeated()
            && field.getContainingOneof() == null
            && field.getJavaType() == JavaType.STRING;
    return plain ? field : null;
  }

  private static String value(Message message, FieldDescriptor field) {
    return (String) message.getField(field);
  }

  @SuppressWarnings("unchecked")
  private static <T> T sameType(T request, Message completed) {
    return (T) request.getClass().cast(completed);
  }
}
