package rankfs.spark;

import java.io.IOException;
import java.util.Map;
import org.apache.spark.SparkConf;
import org.apache.spark.TaskContext;
import org.apache.spark.shuffle.api.ShuffleDataIO;
import org.apache.spark.shuffle.api.ShuffleDriverComponents;
import org.apache.spark.shuffle.api.ShuffleExecutorComponents;
import org.apache.spark.shuffle.api.ShuffleMapOutputWriter;
import org.apache.spark.util.TaskCompletionListener;

/** Where Spark's writers have the output of maps: in the pool, in the job of the application. */
public class RankfsShuffleDataIO implements ShuffleDataIO {
  private final SparkConf conf;

  public RankfsShuffleDataIO(SparkConf conf) {
    this.conf = conf;
  }

  @Override
  public ShuffleDriverComponents driver() {
    if (!conf.get(Settings.MANAGER, "").equals(RankfsShuffleManager.class.getName())) {
      throw new IllegalArgumentException(
          "a shuffle in the pool needs both: set " + Settings.MANAGER + "=" + RankfsShuffleManager.class.getName());
    }
    return new Driver(new Job(Settings.of(conf).job()));
  }

  @Override
  public ShuffleExecutorComponents executor() {
    return new Executor(Settings.of(conf));
  }

  private static class Driver implements ShuffleDriverComponents {
    private final Job job;

    Driver(Job job) {
      this.job = job;
    }

    @Override
    public Map<String, String> initializeApplication() {
      try {
        job.make();
      } catch (IOException e) {
        throw Sneaky.thrown(e);
      }
      return Map.of();
    }

    @Override
    public void cleanupApplication() {
      try {
        job.remove();
      } catch (IOException e) {
        throw Sneaky.thrown(e);
      }
    }

    @Override
    public void removeShuffle(int shuffle, boolean blocking) {
      try {
        job.removeShuffle(shuffle);
      } catch (IOException e) {
        throw Sneaky.thrown(e);
      }
    }

    @Override
    public boolean supportsReliableStorage() {
      return true;
    }
  }

  private record Executor(Settings settings) implements ShuffleExecutorComponents {
    @Override
    public void initializeExecutor(String application, String executor, Map<String, String> more) {}

    @Override
    public ShuffleMapOutputWriter createMapOutputWriter(int shuffle, long task, int parts) throws IOException {
      TaskContext context = TaskContext.get();
      Stage stage = Stage.of(context, shuffle);
      stage.make(settings, context.numPartitions(), parts);
      MapWriter map = new MapWriter(stage.in(settings.job()), context.partitionId(), task, parts);
      context.addTaskCompletionListener((TaskCompletionListener) c -> map.end()); // not all of Spark's writers abort
      return map;
    }
  }
}
