package dev.polynym;

import dev.polynym.v1.Event;
import dev.polynym.v1.EventType;

/**
 * An event of a watch.
 *
 * @param event the event
 * @param resumeToken the token with which a later watch resumes after this event
 */
public record WatchEvent(Event event, String resumeToken) {
  /**
   * Returns what has happened, as requests name it.
   *
   * @return the type; unspecified if this client is older than the type
   */
  public EventType type() {
    EventType type = EventType.forNumber(event.getChangeCase().getNumber());
    return type == null ? EventType.EVENT_TYPE_UNSPECIFIED : type;
  }
}
