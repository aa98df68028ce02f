package dev.polynym;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/** Look-ups with equal options: their calls under way, and those that wait for one. */
final class LookupGroup {
  /** The number of calls under way from which look-ups wait. */
  private static final int MAX_UNDER_WAY = 2;

  /** The number of calls under way that have taken too long. */
  private static final int MAX_STALLED = 8;

  final Set<Lookup> waiting = new LinkedHashSet<>();
  boolean hasAlarm;
  private final Deque<Flight> flights = new ArrayDeque<>();
  private int stalled;

  /** A call under way. */
  static class Flight {
    private final long began = System.nanoTime();
  }

  boolean hasRoom() {
    return flights.size() < MAX_UNDER_WAY;
  }

  boolean isIdle() {
    return flights.isEmpty() && stalled == 0 && waiting.isEmpty();
  }

  <F extends Flight> F begin(F flight) {
    flights.add(flight);
    return flight;
  }

  void end(Flight flight) {
    if (!flights.remove(flight)) {
      stalled--;
    }
  }

  /** A call that has taken longer than a time holds up no others. */
  void noteStalled(long nanos) {
    long now = System.nanoTime();
    while (!flights.isEmpty()
        && stalled < MAX_STALLED
        && now - flights.element().began >= nanos) {
      flights.remove();
      stalled++;
    }
  }

  /** The look-ups of the next call: those that have waited longest, and fit. */
  List<Lookup> take(int maxItems) {
    List<Lookup> taken = new ArrayList<>();
    int bytes = 0;
    Iterator<Lookup> next = waiting.iterator();
    while (next.hasNext() && taken.size() < maxItems) {
      Lookup lookup = next.next();
      bytes += Batches.size(lookup.identifier);
      if (!taken.isEmpty() && !Batches.fits(bytes)) {
        break;
      }
      next.remove();
      taken.add(lookup);
    }
    return taken;
  }
}
