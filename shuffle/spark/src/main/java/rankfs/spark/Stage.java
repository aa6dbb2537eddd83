package rankfs.spark;

import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.spark.TaskContext;
import org.apache.spark.storage.BlockManagerId;
import scala.Option;

/**
 * The stage of the pool that an attempt of a stage of Spark writes. Attempts must not share one:
 * where what is computed differs from run to run, a map of the run before would stand for its
 * successor.
 */
record Stage(String name) {
  private static final String HOST = "rankfs"; // of no node, so that none takes maps along

  static Stage of(TaskContext context, int shuffle) {
    return new Stage("shuffle-" + shuffle + "." + context.stageId() + "." + context.stageAttemptNumber());
  }

  /** Stage is what has a map, by where Spark says that it is. */
  static Stage at(BlockManagerId location) {
    return new Stage(location.executorId());
  }

  /** AllOf is a pattern of all stages of a shuffle. */
  static String allOf(int shuffle) {
    return "shuffle-" + shuffle + ".*";
  }

  BlockManagerId location() {
    return BlockManagerId.apply(name, HOST, 1, Option.empty());
  }

  Path in(Path job) {
    return job.resolve(name);
  }

  /** Each task does this, as none knows what others have done: the second time it changes nothing. */
  void make(Settings settings, int maps, int parts) throws IOException {
    Path dir = in(settings.job());
    try {
      Files.createDirectory(dir);
    } catch (FileAlreadyExistsException e) {
      // by another task
    }
    int pieces = parts + 1; // the last of a map says where its parts begin
    Files.writeString(dir.resolve("spec"), "maps=" + maps + " parts=" + pieces + " copies=" + settings.copies() + "\n");
  }

  static String map(int number) {
    return String.format("map-%06d", number);
  }

  /** Lane is one of the directories of a stage in which maps are committed beside each other. */
  static String lane(int number) {
    return String.format(".lane-%02d", number % 64);
  }

  static String part(int number) {
    return String.format("part-%06d", number);
  }
}
