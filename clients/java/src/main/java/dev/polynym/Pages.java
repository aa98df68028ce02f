package dev.polynym;

import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.function.Function;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;

/**
 * The items of all pages of a list. A page is fetched when its first item is asked for, which may
 * throw a {@link dev.polynym.errors.PolynymException}. Each iterator begins anew.
 *
 * @param <T> the type of the items
 */
public final class Pages<T> implements Iterable<T> {
  private final String first;
  private final Function<String, Page<T>> fetch;

  /** The items of one page, and the token of the next one, which is empty on the last page. */
  private record Page<T>(List<T> items, String next) {}

  /** Pages from the one of the token {@code first}, each fetched by its token. */
  private Pages(String first, Function<String, Page<T>> fetch) {
    this.first = first;
    this.fetch = fetch;
  }

  /** The items of a list whose pages are fetched by their tokens. */
  static <A, T> Pages<T> of(
      String first,
      Function<String, A> fetch,
      Function<A, List<T>> items,
      Function<A, String> next) {
    return new Pages<>(first, token -> {
      A answer = fetch.apply(token);
      return new Page<>(items.apply(answer), next.apply(answer));
    });
  }

  /**
   * Returns the items as a lazy stream.
   *
   * @return the stream
   */
  public Stream<T> stream() {
    return StreamSupport.stream(spliterator(), false);
  }

  @Override
  public Iterator<T> iterator() {
    return new Items();
  }

  private final class Items implements Iterator<T> {
    private String token = first;
    private boolean last;
    private Iterator<T> page = List.<T>of().iterator();

    @Override
    public boolean hasNext() {
      while (!page.hasNext() && !last) {
        Page<T> fetched = fetch.apply(token);
        page = fetched.items().iterator();
        token = fetched.next();
        last = token.isEmpty();
      }
      return page.hasNext();
    }

    @Override
    public T next() {
      if (!hasNext()) {
        throw new NoSuchElementException();
      }
      return page.next();
    }
  }
}
