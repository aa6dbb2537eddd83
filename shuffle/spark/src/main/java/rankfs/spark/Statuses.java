package rankfs.spark;

import org.apache.spark.MapOutputTracker;
import org.apache.spark.MapOutputTrackerMaster;
import org.apache.spark.MapOutputTrackerWorker;
import org.apache.spark.SparkEnv;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.shuffle.MetadataFetchFailedException;
import scala.Option;

/**
 * Where the maps of a shuffle are. What trackers say of blocks leaves out those of no bytes, and
 * whether a stage has all maps is to be known; so this reads what they have cached. It is gone when
 * Spark hears of a failure, and then they ask again.
 */
final class Statuses {
  private static final int TRIES = 10;

  private Statuses() {}

  static MapStatus[] of(int shuffle, int part) {
    MapOutputTracker tracker = SparkEnv.get().mapOutputTracker();
    for (int i = 0; i < TRIES; i++) {
      tracker.getMapSizesByExecutorId(shuffle, 0, Integer.MAX_VALUE, part, part); // of no block
      MapStatus[] all = cached(tracker, shuffle);
      if (all != null) {
        return all;
      }
    }
    throw Sneaky.thrown(new MetadataFetchFailedException(
        shuffle, part, "the driver does not say where all maps of shuffle " + shuffle + " are"));
  }

  private static MapStatus[] cached(MapOutputTracker tracker, int shuffle) {
    Option<MapStatus[]> all = tracker instanceof MapOutputTrackerMaster driver // of an application that is one process
        ? driver.shuffleStatuses().get(shuffle).map(status -> status.withMapStatuses(maps -> maps.clone()))
        : ((MapOutputTrackerWorker) tracker).mapStatuses().get(shuffle);
    if (all.isEmpty()) {
      return null;
    }
    for (MapStatus map : all.get()) {
      if (map == null) {
        return null;
      }
    }
    return all.get();
  }
}
