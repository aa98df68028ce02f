package dev.polynym.internal;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;

/** Runs tasks on the thread that waits for a call: a blocking call needs no other thread. */
final class CallerExecutor implements Executor {
  private final BlockingQueue<Runnable> tasks = new LinkedBlockingQueue<>();
  private volatile boolean closed;

  @Override
  public void execute(Runnable task) {
    tasks.add(task);
    if (closed) {
      drain();
    }
  }

  /** Waits for a task and runs it. */
  void runNext() throws InterruptedException {
    tasks.take().run();
  }

  /** Runs the remaining tasks. Later ones run on the threads that bring them. */
  void close() {
    closed = true;
    drain();
  }

  private void drain() {
    for (Runnable task = tasks.poll(); task != null; task = tasks.poll()) {
      task.run();
    }
  }
}
