// Events and their types.
import { type Event, EventType } from "./gen/polynym/v1/journal.js";

/**
 * The type of an event, as in the filters of watches and histories: `UNSPECIFIED` if it is newer
 * than this client.
 */
export function eventTypeOf({ change }: Event): EventType {
  const name = (change?.$case ?? "unspecified").replace(/[A-Z]/g, "_$&").toUpperCase();
  return EventType[name as keyof typeof EventType];
}
