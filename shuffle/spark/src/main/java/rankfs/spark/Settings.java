package rankfs.spark;

import java.nio.file.Path;
import org.apache.spark.SparkConf;

/** What a user sets. */
record Settings(Path job, int copies) {
  static final String MANAGER = "spark.shuffle.manager";
  static final String IO = "spark.shuffle.sort.io.plugin.class";
  static final String PUSH = "spark.shuffle.push.enabled";
  static final String DIR = "spark.rankfs.dir";
  static final String COPIES = "spark.rankfs.copies";

  private static final int MOST_COPIES = 8; // as the spec of a stage may have

  static Settings of(SparkConf conf) {
    if (!conf.contains(DIR)) {
      throw new IllegalArgumentException(
          DIR + " is not set: name a job of the shuffle pool that is not there yet, as /mnt/rankfs/shuffle/JOB");
    }
    int copies = conf.getInt(COPIES, 2);
    if (copies < 1 || copies > MOST_COPIES) {
      throw new IllegalArgumentException(COPIES + "=" + copies + ": write a number from 1 to " + MOST_COPIES);
    }
    return new Settings(Path.of(conf.get(DIR)), copies);
  }
}
