package dev.polynym.internal;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class RetryBudgetTest {
  private final RetryBudget budget = new RetryBudget();

  @Test
  void itEndsAtHalf() {
    for (int failure = 0; failure < 4; failure++) {
      budget.failed(null);
    }
    assertTrue(budget.allowsRetry());
    budget.failed(null);
    assertFalse(budget.allowsRetry());
    budget.answered();
    assertTrue(budget.allowsRetry());
  }

  @Test
  void callsLostWithOneConnectionTakeOneToken() {
    Object first = new Object();
    Object second = new Object();
    for (int call = 0; call < 20; call++) {
      budget.failed(first);
      budget.failed(second);
    }
    assertTrue(budget.allowsRetry());
  }
}
