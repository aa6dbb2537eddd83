package rankfs.spark;

import java.io.BufferedInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.RandomAccessFile;
import java.nio.LongBuffer;
import java.util.Iterator;
import java.util.function.Function;

/**
 * The pieces of some extents that have bytes, in their order. One file is open at a time, and one
 * piece is read at a time. RandomAccessFile is not interruptible, for the reason that {@link
 * MapWriter} has.
 */
class Pieces {
  private static final int BUFFER = 1 << 16;

  private final Iterator<Extent> extents;
  private Extent extent;
  private RandomAccessFile file;
  private LongBuffer offsets;
  private int piece;

  Pieces(Iterator<Extent> extents) {
    this.extents = extents;
  }

  /** Next opens a piece; it is null after the last. */
  Piece next() throws IOException {
    for (;;) {
      if (extent != null && piece + 1 < extent.pieces()) {
        piece++;
      } else if (extents.hasNext()) {
        close();
        extent = extents.next();
        piece = 0;
        file = new RandomAccessFile(extent.file().toFile(), "r");
        offsets = extent.offsets(file);
      } else {
        close();
        extent = null;
        return null;
      }
      long size = offsets.get(piece + 1) - offsets.get(piece);
      if (size > 0) {
        file.seek(offsets.get(piece));
        return new Piece(file, extent.map(piece), extent.part(piece), size);
      }
    }
  }

  /** The map, and the part, of the piece that next opened, or could not. */
  int map() {
    return extent.map(piece);
  }

  int part() {
    return extent.part(piece);
  }

  void close() {
    try {
      if (file != null) {
        file.close();
        file = null;
      }
    } catch (IOException e) {
      throw new IllegalStateException("close a file that was read", e);
    }
  }

  /** A piece of a file that stands where it begins. */
  record Piece(RandomAccessFile file, int map, int part, long size) {
    /** Stream reads it; what goes wrong is thrown as what failed makes of it. */
    InputStream stream(Function<IOException, RuntimeException> failed) {
      return new BufferedInputStream(new Bounded(file, size, failed), BUFFER);
    }
  }

  private static class Bounded extends InputStream {
    private final RandomAccessFile file;
    private final Function<IOException, RuntimeException> failed;
    private long left;

    Bounded(RandomAccessFile file, long size, Function<IOException, RuntimeException> failed) {
      this.file = file;
      this.left = size;
      this.failed = failed;
    }

    @Override
    public int read() {
      byte[] one = new byte[1];
      return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
    }

    @Override
    public int read(byte[] b, int from, int n) {
      if (n == 0) {
        return 0;
      }
      if (left == 0) {
        return -1;
      }
      try {
        int read = file.read(b, from, (int) Math.min(left, n));
        if (read < 0) {
          throw new EOFException("the file ends " + left + " bytes before the piece");
        }
        left -= read;
        return read;
      } catch (IOException e) {
        throw failed.apply(e);
      }
    }

    @Override
    public int available() {
      return (int) Math.min(left, Integer.MAX_VALUE);
    }
  }
}
