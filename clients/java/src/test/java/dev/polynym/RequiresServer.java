package dev.polynym;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import org.junit.jupiter.api.condition.EnabledIfEnvironmentVariable;

/** Marks tests that start a real server. */
@Target({ElementType.TYPE, ElementType.METHOD})
@Retention(RetentionPolicy.RUNTIME)
@EnabledIfEnvironmentVariable(
    named = "POLYNYM_BIN",
    matches = ".+",
    disabledReason = "POLYNYM_BIN does not name the program polynym")
@interface RequiresServer {}
