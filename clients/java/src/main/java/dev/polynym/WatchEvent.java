package dev.polynym;

import dev.polynym.v1.Event;

/**
 * An event of a watch.
 *
 * @param event the event
 * @param resumeToken the token with which a later watch resumes after this event
 */
public record WatchEvent(Event event, String resumeToken) {}
