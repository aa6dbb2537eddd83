package rankfs.spark;

import java.io.IOException;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkConf;
import org.apache.spark.TaskContext;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.shuffle.BaseShuffleHandle;
import org.apache.spark.shuffle.ShuffleHandle;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.shuffle.ShuffleWriteMetricsReporter;
import org.apache.spark.shuffle.ShuffleWriter;
import org.apache.spark.shuffle.sort.SortShuffleManager;
import scala.Option;
import scala.Product2;
import scala.collection.Iterator;

/**
 * Spark's sort shuffle with its files in the shuffle pool. What sorts and serializes the output of
 * a map is Spark's own; {@link RankfsShuffleDataIO} takes it to the pool, {@link StageReader} reads
 * it there.
 *
 * <p>Each attempt of a stage has a directory of its own, a {@link Stage}, so that what an attempt
 * writes that Spark has given up is in the way of no other. Where a map is Spark knows as the address of
 * an executor that there is not, which is named for that directory: it is lost with no real one,
 * and when a read fails there Spark takes all maps of the directory for lost, and those alone.
 */
public class RankfsShuffleManager extends SortShuffleManager {
  public RankfsShuffleManager(SparkConf conf) {
    super(conf);
    if (!conf.get(Settings.IO, "").equals(RankfsShuffleDataIO.class.getName())) {
      throw new IllegalArgumentException(
          "a shuffle in the pool needs both: set " + Settings.IO + "=" + RankfsShuffleDataIO.class.getName());
    }
    if (conf.getBoolean(Settings.PUSH, false)) {
      throw new IllegalArgumentException("a shuffle in the pool is not pushed: leave out " + Settings.PUSH);
    }
  }

  @Override
  public <K, V> ShuffleWriter<K, V> getWriter(
      ShuffleHandle handle, long task, TaskContext context, ShuffleWriteMetricsReporter metrics) {
    ShuffleWriter<K, V> sort = super.getWriter(handle, task, context, metrics);
    return new Located<>(sort, Stage.of(context, handle.shuffleId()));
  }

  @Override
  public <K, C> ShuffleReader<K, C> getReader(
      ShuffleHandle handle, int firstMap, int endMap, int firstPart, int endPart,
      TaskContext context, ShuffleReadMetricsReporter metrics) {
    @SuppressWarnings("unchecked")
    ShuffleDependency<K, Object, C> shuffle = ((BaseShuffleHandle<K, Object, C>) handle).dependency();
    return new StageReader<>(shuffle, new Range(firstMap, endMap), new Range(firstPart, endPart), context, metrics);
  }

  /** A writer whose map is in a stage of the pool, not on its executor. */
  private static class Located<K, V> extends ShuffleWriter<K, V> {
    private final ShuffleWriter<K, V> sort;
    private final Stage stage;

    Located(ShuffleWriter<K, V> sort, Stage stage) {
      this.sort = sort;
      this.stage = stage;
    }

    @Override
    public void write(Iterator<Product2<K, V>> records) {
      try {
        sort.write(records);
      } catch (IOException e) {
        throw Sneaky.thrown(e);
      }
    }

    @Override
    public Option<MapStatus> stop(boolean success) {
      Option<MapStatus> status = sort.stop(success);
      if (status.isDefined()) {
        status.get().updateLocation(stage.location());
      }
      return status;
    }

    @Override
    public long[] getPartitionLengths() {
      return sort.getPartitionLengths();
    }
  }
}
