package rankfs.spark;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.NoSuchElementException;
import org.apache.spark.Aggregator;
import org.apache.spark.InterruptibleIterator;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.scheduler.MapStatus;
import org.apache.spark.serializer.SerializerInstance;
import org.apache.spark.shuffle.FetchFailedException;
import org.apache.spark.shuffle.ShuffleReadMetricsReporter;
import org.apache.spark.shuffle.ShuffleReader;
import org.apache.spark.shuffle.checksum.RowBasedChecksum;
import org.apache.spark.storage.BlockManagerId;
import org.apache.spark.storage.ShuffleBlockId;
import org.apache.spark.util.TaskCompletionListener;
import org.apache.spark.util.collection.ExternalSorter;
import scala.Option;
import scala.Product2;
import scala.Tuple2;
import scala.collection.AbstractIterator;
import scala.collection.Iterator;
import scala.collection.Iterator$;

/**
 * Reads some parts of some maps. Where one stage of the pool has all maps of a shuffle, which it
 * has unless something failed, it opens the parts. Else several stages have maps, and none of them
 * is sealed: it opens these maps, one after the other.
 *
 * <p>Whatever the pool answers but bytes, as that no copy of a map is left, is a failed fetch, after
 * which Spark runs the maps again. Bytes the pool has checked.
 */
class StageReader<K, C> implements ShuffleReader<K, C> {
  private final ShuffleDependency<K, Object, C> shuffle;
  private final Range maps;
  private final Range parts;
  private final TaskContext context;
  private final ShuffleReadMetricsReporter metrics;

  StageReader(
      ShuffleDependency<K, Object, C> shuffle, Range maps, Range parts, TaskContext context, ShuffleReadMetricsReporter metrics) {
    this.shuffle = shuffle;
    this.maps = maps;
    this.parts = parts;
    this.context = context;
    this.metrics = metrics;
  }

  @Override
  public Iterator<Product2<K, C>> read() {
    MapStatus[] all = Statuses.of(shuffle.shuffleId(), parts.first());
    Pieces pieces = new Pieces(extents(all).iterator());
    context.addTaskCompletionListener((TaskCompletionListener) c -> pieces.close());
    Iterator<Product2<K, C>> records = combined(new InterruptibleIterator<>(context, new Records(all, pieces)));
    return new InterruptibleIterator<>(context, records); // what sorts has read all of the other
  }

  private List<Extent> extents(MapStatus[] all) {
    Path job = Settings.of(SparkEnv.get().conf()).job();
    Range of = new Range(maps.first(), Math.min(maps.end(), all.length));
    List<Extent> extents = new ArrayList<>();
    if (of.size() <= 0) {
      return extents;
    }
    BlockManagerId first = all[of.first()].location();
    if (Arrays.stream(all).allMatch(map -> map.location().equals(first))) {
      for (int part = parts.first(); part < parts.end(); part++) {
        extents.add(Extent.ofPart(Stage.at(first).in(job), part, of, of.size() == all.length));
      }
      return extents;
    }
    for (int map = of.first(); map < of.end(); map++) {
      extents.add(Extent.ofMap(Stage.at(all[map].location()).in(job), map, parts));
    }
    return extents;
  }

  /** The records of all pieces, which it counts. */
  private class Records extends AbstractIterator<Product2<K, Object>> {
    private final MapStatus[] all;
    private final Pieces pieces;
    private final SerializerInstance serializer = shuffle.serializer().newInstance();
    private Iterator<Tuple2<Object, Object>> piece = Iterator$.MODULE$.empty();
    private boolean ended;

    Records(MapStatus[] all, Pieces pieces) {
      this.all = all;
      this.pieces = pieces;
    }

    @Override
    public boolean hasNext() {
      while (!piece.hasNext()) {
        if (!open()) {
          if (!ended) {
            ended = true;
            context.taskMetrics().mergeShuffleReadMetrics();
          }
          return false;
        }
      }
      return true;
    }

    private boolean open() {
      long began = System.nanoTime();
      Pieces.Piece next = null;
      try {
        next = pieces.next();
      } catch (IOException e) {
        throw failed(pieces.map(), pieces.part(), e);
      }
      metrics.incFetchWaitTime((System.nanoTime() - began) / 1_000_000);
      if (next == null) {
        return false;
      }
      metrics.incLocalBlocksFetched(1);
      metrics.incLocalBytesRead(next.size());
      int map = next.map();
      int part = next.part();
      ShuffleBlockId id = new ShuffleBlockId(shuffle.shuffleId(), all[map].mapId(), part);
      piece = serializer
          .deserializeStream(SparkEnv.get().serializerManager().wrapStream(id, next.stream(e -> failed(map, part, e))))
          .asKeyValueIterator();
      return true;
    }

    private RuntimeException failed(int map, int part, IOException e) {
      context.killTaskIfInterrupted();
      MapStatus status = all[map];
      return Sneaky.thrown(new FetchFailedException(
          status.location(), shuffle.shuffleId(), status.mapId(), map, part, e.toString(), e));
    }

    @Override
    @SuppressWarnings("unchecked")
    public Product2<K, Object> next() {
      if (!hasNext()) {
        throw new NoSuchElementException();
      }
      metrics.incRecordsRead(1);
      return (Product2<K, Object>) (Product2<?, ?>) piece.next();
    }
  }

  /** Sorted, or with one record for each key, or as they are: what Spark's own reader does. */
  @SuppressWarnings("unchecked")
  private Iterator<Product2<K, C>> combined(Iterator<Product2<K, Object>> records) {
    Option<Aggregator<K, Object, C>> aggregator = shuffle.aggregator();
    if (shuffle.keyOrdering().isDefined()) {
      if (aggregator.isDefined() && shuffle.mapSideCombine()) {
        Aggregator<K, Object, C> a = aggregator.get();
        aggregator = Option.apply(new Aggregator<>(c -> (C) c, (c, d) -> a.mergeCombiners().apply(c, (C) d), a.mergeCombiners()));
      }
      return new ExternalSorter<K, Object, C>(
              context, aggregator, Option.empty(), shuffle.keyOrdering(), shuffle.serializer(), new RowBasedChecksum[0])
          .insertAllAndUpdateMetrics(records);
    }
    if (aggregator.isEmpty()) {
      return (Iterator<Product2<K, C>>) (Iterator<?>) records;
    }
    Iterator<Tuple2<K, C>> combined = shuffle.mapSideCombine()
        ? aggregator.get().combineCombinersByKey((Iterator<Product2<K, C>>) (Iterator<?>) records, context)
        : aggregator.get().combineValuesByKey(records, context);
    return (Iterator<Product2<K, C>>) (Iterator<?>) combined;
  }
}
