package rankfs.spark;

/** Maps or parts, of which end is the first that is not meant. */
record Range(int first, int end) {
  int size() {
    return end - first;
  }
}
