package rankfs.spark;

import java.io.EOFException;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.LongBuffer;
import java.nio.file.Path;

/** A file of pieces that lie side by side: those of some maps in a part, or of some parts in a map. */
record Extent(Path file, Range maps, Range parts, boolean isMap) {
  static Extent ofPart(Path stage, int part, Range maps, boolean whole) {
    String some = whole ? "" : "@maps=" + maps.first() + "-" + (maps.end() - 1);
    return new Extent(stage.resolve(Stage.part(part) + some), maps, new Range(part, part + 1), false);
  }

  static Extent ofMap(Path stage, int map, Range parts) {
    return new Extent(stage.resolve(Stage.map(map)), new Range(map, map + 1), parts, true);
  }

  int pieces() {
    return maps.size() * parts.size();
  }

  int map(int piece) {
    return isMap ? maps.first() : maps.first() + piece;
  }

  int part(int piece) {
    return isMap ? parts.first() + piece : parts.first();
  }

  /** Offsets are where the pieces begin, and where the last ends. */
  LongBuffer offsets(RandomAccessFile open) throws IOException {
    int size = (pieces() + 1) * Long.BYTES;
    if (isMap) {
      return numbers(open, tableOf(open) + (long) parts.first() * Long.BYTES, size);
    }
    try (RandomAccessFile idx = new RandomAccessFile(file + ".idx", "r")) {
      if (idx.length() != size) {
        throw new EOFException(file + ".idx has " + idx.length() + " bytes, not " + size);
      }
      return numbers(idx, 0, size);
    }
  }

  /** TableOf is where the last piece of a map begins; the last number in it says so. */
  private static long tableOf(RandomAccessFile map) throws IOException {
    return numbers(map, map.length() - Long.BYTES, Long.BYTES).get(0);
  }

  private static LongBuffer numbers(RandomAccessFile in, long at, int size) throws IOException {
    byte[] bytes = new byte[size];
    in.seek(at);
    in.readFully(bytes);
    return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer();
  }
}
