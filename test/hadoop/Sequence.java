import com.fasterxml.jackson.annotation.JsonAutoDetect;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.zip.CRC32;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.BytesWritable;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.io.NullWritable;
import org.apache.hadoop.io.SequenceFile;
import org.apache.hadoop.io.SequenceFile.CompressionType;
import org.apache.hadoop.io.SequenceFile.Writer;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.io.Writable;
import org.apache.hadoop.io.compress.CompressionCodec;
import org.apache.hadoop.io.compress.DefaultCodec;
import org.apache.hadoop.util.ReflectionUtils;

/**
 * Writes SequenceFiles by Hadoop's own writer. Each line of stdin is an order
 * in JSON, answered by a line:
 *
 * <pre>
 * {"path": "file:///tmp/a.seq", "compression": "BLOCK", "codec": "GzipCodec",
 *  "key": "LongWritable", "value": "Text", "records": 1000, "size": 100, "seed": 1}
 * {"path": ..., "bytes": 51234, "records": 1000, "valueBytes": 99876, "crc32": 123456}
 * </pre>
 *
 * bytes is the length of the file; crc32 is that of all values, one after the
 * other, as a program means them: without the lengths and codes around them.
 *
 * A value has up to 2*size bytes, the letters a to p. Who knows the seed can
 * make record i again: numbers come from SplitMix64 started at seed + i * 2^32;
 * the first, unsigned, modulo 2*size + 1 is the length, and each further one
 * gives sixteen letters, lowest four bits first. A LongWritable is the first
 * number itself, big end first; a NullWritable has no bytes.
 *
 * "settings" are of Hadoop's configuration. The codec "Own" is one that no reader knows.
 */
public class Sequence {
  @JsonAutoDetect(fieldVisibility = JsonAutoDetect.Visibility.ANY)
  static class Order {
    String path;
    String compression = "NONE";
    String codec = "DefaultCodec";
    String key = "LongWritable";
    String value = "BytesWritable";
    int records = 1000;
    int size = 100;
    long seed = 1;
    int syncInterval = SequenceFile.SYNC_INTERVAL;
    int blockSize = 1_000_000; // of BLOCK, before compression
    Map<String, String> settings = Map.of();
  }

  /** A codec that Hadoop does not have. */
  public static class Own extends DefaultCodec {}

  private final Configuration conf = new Configuration();

  public static void main(String[] args) throws IOException {
    Sequence sequence = new Sequence();
    ObjectMapper json = new ObjectMapper();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      Map<String, Object> answer;
      try {
        answer = sequence.write(json.readValue(line, Order.class));
      } catch (Exception | LinkageError e) {
        answer = Map.of("error", e.toString());
      }
      System.out.println(json.writeValueAsString(answer));
    }
  }

  Map<String, Object> write(Order o) throws Exception {
    Path path = new Path(o.path);
    FileSystem fs = path.getFileSystem(conf);
    fs.setWriteChecksum(false); // no .crc file beside a local one
    CRC32 crc = new CRC32();
    long valueBytes = 0;
    try (Writer writer = open(o, path)) {
      for (int i = 0; i < o.records; i++) {
        byte[] value = value(o, i);
        crc.update(value);
        valueBytes += value.length;
        writer.append(key(o.key, i), wrap(o.value, value));
      }
    }
    Map<String, Object> answer = new LinkedHashMap<>();
    answer.put("path", o.path);
    answer.put("bytes", fs.getFileStatus(path).getLen());
    answer.put("records", o.records);
    answer.put("valueBytes", valueBytes);
    answer.put("crc32", crc.getValue());
    return answer;
  }

  Writer open(Order o, Path path) throws Exception {
    Configuration conf = new Configuration(this.conf);
    conf.setInt("io.seqfile.compress.blocksize", o.blockSize);
    o.settings.forEach(conf::set);
    CompressionType type = CompressionType.valueOf(o.compression);
    CompressionCodec codec = null;
    if (type != CompressionType.NONE) {
      Class<?> c = o.codec.equals("Own") ? Own.class : Class.forName("org.apache.hadoop.io.compress." + o.codec);
      codec = (CompressionCodec) ReflectionUtils.newInstance(c, conf);
    }
    return SequenceFile.createWriter(conf,
        Writer.file(path), Writer.compression(type, codec),
        Writer.keyClass(Class.forName("org.apache.hadoop.io." + o.key)),
        Writer.valueClass(Class.forName("org.apache.hadoop.io." + o.value)),
        Writer.syncInterval(o.syncInterval));
  }

  static Writable key(String kind, int i) {
    switch (kind) {
      case "LongWritable": return new LongWritable(i);
      case "Text": return new Text("key-" + i);
      case "NullWritable": return NullWritable.get();
      default: throw new IllegalArgumentException("keys are LongWritable, Text or NullWritable, not " + kind);
    }
  }

  static Writable wrap(String kind, byte[] value) {
    switch (kind) {
      case "BytesWritable": return new BytesWritable(value);
      case "Text": return new Text(new String(value, StandardCharsets.US_ASCII));
      case "LongWritable": return new LongWritable(ByteBuffer.wrap(value).getLong());
      case "NullWritable": return NullWritable.get();
      default: throw new IllegalArgumentException("values are BytesWritable, Text, LongWritable or NullWritable, not " + kind);
    }
  }

  static byte[] value(Order o, int i) {
    SplitMix numbers = new SplitMix(o.seed + ((long) i << 32));
    long first = numbers.next();
    if (o.value.equals("LongWritable")) {
      return ByteBuffer.allocate(8).putLong(first).array();
    }
    if (o.value.equals("NullWritable")) {
      return new byte[0];
    }
    byte[] value = new byte[(int) Long.remainderUnsigned(first, 2L * o.size + 1)];
    long letters = 0;
    for (int j = 0; j < value.length; j++) {
      letters = j % 16 == 0 ? numbers.next() : letters >>> 4;
      value[j] = (byte) ('a' + (letters & 15));
    }
    return value;
  }

  /** The generator of Steele, Lea and Flood. */
  static class SplitMix {
    private long state;

    SplitMix(long seed) {
      state = seed;
    }

    long next() {
      long z = state += 0x9e3779b97f4a7c15L;
      z = (z ^ (z >>> 30)) * 0xbf58476d1ce4e5b9L;
      z = (z ^ (z >>> 27)) * 0x94d049bb133111ebL;
      return z ^ (z >>> 31);
    }
  }
}
