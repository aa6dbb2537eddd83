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

  static Settings of(SparkConf conf) {
    if (!conf.contains(DIR)) {
      throw new IllegalArgumentException(
          DIR + " is not set: name a job of the shuffle pool that is not there yet, as /mnt/rankfs/shuffle/JOB");
    }
    return new Settings(Path.of(conf.get(DIR)), conf.getInt(COPIES, 2));
  }
}
