package dev.polynym;

import com.google.protobuf.InvalidProtocolBufferException;
import dev.polynym.errors.PolynymException;
import dev.polynym.v1.Identifier;
import dev.polynym.v1.ResolveIdentityRequest;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Loops that look up one identifier after another until they are ended. */
final class KeptLookups {
  private static final int LOOPS = 8;

  private final PolynymClient client;
  private final Identifier identifier;
  private final AtomicInteger answers = new AtomicInteger();
  private final Queue<PolynymException> errors = new ConcurrentLinkedQueue<>();
  private final List<Thread> threads;
  private volatile boolean ended;

  KeptLookups(PolynymClient client, byte[] request) throws InvalidProtocolBufferException {
    this.client = client;
    identifier = ResolveIdentityRequest.parseFrom(request).getIdentifier();
    threads = IntStream.range(0, LOOPS).mapToObj(loop -> new Thread(this::run)).toList();
    threads.forEach(Thread::start);
  }

  private void run() {
    while (!ended) {
      try {
        client.resolve(identifier);
        answers.incrementAndGet();
      } catch (PolynymException error) {
        errors.add(error);
      }
    }
  }

  /** Ends the loops, and returns the number of their answers. */
  int end() throws InterruptedException {
    ended = true;
    for (Thread thread : threads) {
      thread.join();
    }
    return answers.get();
  }

  Stream<PolynymException> errors() {
    return errors.stream();
  }
}
