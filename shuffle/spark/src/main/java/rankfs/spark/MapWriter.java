package rankfs.spark;

import java.io.BufferedOutputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Arrays;
import org.apache.spark.shuffle.api.ShuffleMapOutputWriter;
import org.apache.spark.shuffle.api.ShufflePartitionWriter;
import org.apache.spark.shuffle.api.metadata.MapOutputCommitMessage;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * An attempt of a map: one file with its parts, one after the other, and a last piece that says
 * where they begin, for {@link Pieces}. A rename commits it. If another attempt of the map was
 * first, this one is discarded by the pool, and its task has done its work.
 *
 * <p>FileOutputStream is not interruptible. A channel would be closed by an interrupt, and the task
 * fail of that and not of what it was interrupted for.
 */
class MapWriter implements ShuffleMapOutputWriter {
  private static final Logger log = LoggerFactory.getLogger(MapWriter.class);
  private static final int BUFFER = 1 << 20;

  private final Path attempt;
  private final Path offsets;
  private final Path map;
  private final long[] sizes;
  private final OutputStream out;
  private boolean ended;

  MapWriter(Path stage, int number, long task, int parts) throws IOException {
    Path lane = stage.resolve(Stage.lane(number));
    attempt = lane.resolve("." + Stage.map(number) + "." + task);
    offsets = lane.resolve(attempt.getFileName() + ".idx");
    map = lane.resolve(Stage.map(number));
    sizes = new long[parts];
    out = new BufferedOutputStream(new FileOutputStream(attempt.toFile()), BUFFER);
  }

  @Override
  public ShufflePartitionWriter getPartitionWriter(int part) {
    return new Piece(part);
  }

  private class Piece extends OutputStream implements ShufflePartitionWriter {
    private final int part;

    Piece(int part) {
      this.part = part;
    }

    @Override
    public OutputStream openStream() {
      return this;
    }

    @Override
    public long getNumBytesWritten() {
      return sizes[part];
    }

    @Override
    public void write(int b) throws IOException {
      out.write(b);
      sizes[part]++;
    }

    @Override
    public void write(byte[] b, int from, int n) throws IOException {
      out.write(b, from, n);
      sizes[part] += n;
    }

    @Override
    public void close() {} // the next piece goes on
  }

  @Override
  public MapOutputCommitMessage commitAllPartitions(long[] checksums) throws IOException {
    ByteBuffer begins = ByteBuffer.allocate((sizes.length + 2) * Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    long at = 0;
    for (long size : sizes) {
      begins.putLong(at);
      at += size;
    }
    begins.putLong(at);
    int table = begins.position();
    out.write(begins.array(), 0, table);
    out.close(); // only a file that no process has open to write can be committed
    begins.putLong(at + table);
    Files.write(offsets, begins.array());
    Files.move(attempt, map, StandardCopyOption.ATOMIC_MOVE);
    ended = true;
    return MapOutputCommitMessage.of(Arrays.copyOf(sizes, sizes.length));
  }

  @Override
  public void abort(Throwable error) {
    end();
  }

  /** End removes what was not committed. What it leaves goes with the stage. */
  void end() {
    if (ended) {
      return;
    }
    ended = true;
    try (out) {
      Files.deleteIfExists(attempt);
      Files.deleteIfExists(offsets);
    } catch (IOException e) {
      log.warn("remove {}: {}", attempt, e.toString());
    }
  }
}
