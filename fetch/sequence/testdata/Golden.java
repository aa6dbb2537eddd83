import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.io.*;
import org.apache.hadoop.io.SequenceFile.CompressionType;
import org.apache.hadoop.io.SequenceFile.Writer;
import org.apache.hadoop.io.compress.*;
import org.apache.hadoop.util.ReflectionUtils;

/**
 * Writes the golden files by Hadoop's own library, into the directory DIR:
 *
 *   java -Djava.library.path=NATIVE -cp 'JARS/*' Golden.java DIR
 *
 * JARS has hadoop-common 3.4.1, what it needs, and lz4-java 1.7.1; NATIVE has a
 * libhadoop.so that knows Zstandard.
 */
public class Golden {
  static final int RECORDS = 40;

  static byte[] payload(int i) {
    int[] special = {0, 1, 127, 128, 129, 255, 256};
    byte[] b = new byte[i < special.length ? special[i] : i * 37 % 90];
    for (int j = 0; j < b.length; j++) b[j] = (byte) ('a' + (i + j / 3) % 26);
    return b;
  }

  static Writable value(Class<?> kind, int i) {
    if (kind == BytesWritable.class) return new BytesWritable(payload(i));
    if (kind == Text.class) return new Text(payload(i));
    return new LongWritable(i * 1000003L);
  }

  static void write(Configuration conf, String dir, CompressionType how, CompressionCodec codec, Class<?> kind)
      throws Exception {
    String with = codec == null ? "" : "-" + codec.getClass().getSimpleName();
    Path path = new Path(dir, how.toString().toLowerCase() + with + "-" + kind.getSimpleName() + ".seq");
    SequenceFile.Metadata metadata = new SequenceFile.Metadata();
    metadata.set(new Text("made by"), new Text("Hadoop"));
    try (Writer w = SequenceFile.createWriter(conf, Writer.file(path), Writer.keyClass(IntWritable.class),
        Writer.valueClass(kind), Writer.metadata(metadata), Writer.compression(how, codec))) {
      for (int i = 0; i < RECORDS; i++) {
        w.append(new IntWritable(i), value(kind, i));
        if (i == RECORDS / 2) w.sync();
      }
    }
  }

  public static void main(String[] args) throws Exception {
    Configuration conf = new Configuration();
    conf.set("fs.file.impl", "org.apache.hadoop.fs.RawLocalFileSystem");
    conf.setInt("io.seqfile.compress.blocksize", 1500);
    String dir = new Path("file:" + args[0]).toString();
    for (Class<?> kind : Arrays.asList(BytesWritable.class, Text.class, LongWritable.class)) {
      write(conf, dir, CompressionType.NONE, null, kind);
      for (Class<?> c : Arrays.asList(DefaultCodec.class, GzipCodec.class, BZip2Codec.class, SnappyCodec.class,
          Lz4Codec.class, ZStandardCodec.class)) {
        CompressionCodec codec = (CompressionCodec) ReflectionUtils.newInstance(c, conf);
        write(conf, dir, CompressionType.RECORD, codec, kind);
        write(conf, dir, CompressionType.BLOCK, codec, kind);
      }
    }
  }
}
