package dev.polynym.internal;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** Runs tasks later. No thread keeps the process alive, and a task that waits delays no other. */
public final class Timers implements Executor {
  private final ScheduledThreadPoolExecutor clock =
      new ScheduledThreadPoolExecutor(1, task -> daemon(task, "polynym-timers"));
  private final ExecutorService tasks =
      Executors.newCachedThreadPool(task -> daemon(task, "polynym-tasks"));

  Timers() {
    clock.setRemoveOnCancelPolicy(true);
  }

  /** Runs a task after a time; at once, on this thread, if the client is closed. */
  public Future<?> after(long nanos, Runnable task) {
    try {
      return clock.schedule(() -> execute(task), nanos, TimeUnit.NANOSECONDS);
    } catch (RejectedExecutionException closed) {
      task.run();
      return CompletableFuture.completedFuture(null);
    }
  }

  /** Runs a task now, on another thread; on this one if the client is closed. */
  @Override
  public void execute(Runnable task) {
    try {
      tasks.execute(task);
    } catch (RejectedExecutionException closed) {
      task.run();
    }
  }

  /** Takes no more tasks. Those that wait still run. */
  void close() {
    clock.shutdown();
    tasks.shutdown();
  }

  private static Thread daemon(Runnable task, String name) {
    Thread thread = new Thread(task, name);
    thread.setDaemon(true);
    return thread;
  }
}
