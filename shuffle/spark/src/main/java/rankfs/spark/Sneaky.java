package rankfs.spark;

/** Throws what Java wants declared, and Scala does not. */
final class Sneaky {
  private Sneaky() {}

  @SuppressWarnings("unchecked")
  static <E extends Throwable> RuntimeException thrown(Throwable e) throws E {
    throw (E) e;
  }
}
