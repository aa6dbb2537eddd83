import com.fasterxml.jackson.annotation.JsonAutoDetect;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Reads files with Hadoop's own client and keeps nothing: what others are
 * measured by. Each line of stdin is an order in JSON, answered by a line:
 *
 * <pre>
 * {"ranges": [{"path": "/a", "offset": 0, "length": -1}], "threads": 2, "warmups": 1}
 * {"bytes": 1048576, "wall": 0.01, "cpu": 0.02}
 * </pre>
 *
 * The process stays warm between orders, so that a benchmark can take turns.
 */
public class Read {
  /** Part of a file; a length below 0 is all of the rest. */
  @JsonAutoDetect(fieldVisibility = JsonAutoDetect.Visibility.ANY)
  static class Range {
    String path;
    long offset;
    long length = -1;
  }

  /** What to read, by how many threads, how often before the clock starts. */
  @JsonAutoDetect(fieldVisibility = JsonAutoDetect.Visibility.ANY)
  static class Order {
    List<Range> ranges = new ArrayList<>();
    int threads = 1;
    int warmups = 0;
    int buffer = 1 << 20;
  }

  private final FileSystem fs;

  Read(FileSystem fs) {
    this.fs = fs;
  }

  public static void main(String[] args) throws IOException {
    Read read = new Read(FileSystem.get(new Configuration()));
    ObjectMapper json = new ObjectMapper();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      Map<String, Object> answer;
      try {
        answer = read.measure(json.readValue(line, Order.class));
      } catch (Exception e) {
        answer = Map.of("error", e.toString());
      }
      System.out.println(json.writeValueAsString(answer));
    }
  }

  Map<String, Object> measure(Order order) throws Exception {
    if (order.buffer <= 0) {
      throw new IllegalArgumentException("a buffer of " + order.buffer + " bytes");
    }
    for (int i = 0; i < order.warmups; i++) {
      readAll(order);
    }
    var process = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    long cpu = process.getProcessCpuTime();
    long wall = System.nanoTime();
    long bytes = readAll(order);
    wall = System.nanoTime() - wall;
    cpu = process.getProcessCpuTime() - cpu;
    Map<String, Object> answer = new LinkedHashMap<>();
    answer.put("bytes", bytes);
    answer.put("wall", wall / 1e9);
    answer.put("cpu", cpu / 1e9);
    return answer;
  }

  /** Threads take one range after the other until none is left. */
  long readAll(Order order) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(order.threads);
    try {
      ThreadLocal<byte[]> buffer = ThreadLocal.withInitial(() -> new byte[order.buffer]);
      List<Future<Long>> parts = new ArrayList<>();
      for (Range range : order.ranges) {
        parts.add(pool.submit(() -> readOne(range, buffer.get())));
      }
      long bytes = 0;
      for (Future<Long> part : parts) {
        bytes += part.get();
      }
      return bytes;
    } finally {
      pool.shutdownNow();
    }
  }

  long readOne(Range range, byte[] buffer) throws IOException {
    try (FSDataInputStream in = fs.open(new Path(range.path))) {
      if (range.offset > 0) {
        in.seek(range.offset);
      }
      long left = range.length < 0 ? Long.MAX_VALUE : range.length;
      long read = 0;
      while (left > 0) {
        int n = in.read(buffer, 0, (int) Math.min(left, buffer.length));
        if (n < 0) {
          break;
        }
        read += n;
        left -= n;
      }
      if (range.length >= 0 && left > 0) {
        throw new EOFException(range.path + " ends " + left + " bytes early");
      }
      return read;
    }
  }
}
