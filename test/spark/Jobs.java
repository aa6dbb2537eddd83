import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;
import org.apache.spark.FetchFailed;
import org.apache.spark.HashPartitioner;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkConf;
import org.apache.spark.SparkEnv;
import org.apache.spark.TaskContext;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.scheduler.SparkListenerTaskEnd;
import org.apache.spark.shuffle.ShuffleDataIOUtils;
import org.apache.spark.shuffle.api.ShuffleExecutorComponents;
import org.apache.spark.shuffle.api.ShuffleMapOutputWriter;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.util.LongAccumulator;
import org.apache.spark.util.TaskCompletionListener;
import scala.Tuple2;

/**
 * An application of Spark. Each argument is a job; a line of stdout says in JSON what came of it:
 * the hash of its result, and how many tasks of maps ran. Without the pool those that lose what is
 * in it lose nothing.
 */
public class Jobs {
  private static final int MAPS = 8;
  private static final int PARTS = 6;
  private static final int RECORDS = (64 << 20) / 100 / MAPS; // of each map; a record has 100 bytes

  private final SparkSession session;
  private final JavaSparkContext spark;
  private final Counts counts = new Counts();

  /** What tasks and executors have done since a job began. */
  static class Counts extends SparkListener {
    final AtomicInteger maps = new AtomicInteger();
    final AtomicInteger speculative = new AtomicInteger(); // of maps
    final AtomicInteger failed = new AtomicInteger();
    final AtomicInteger failedFetches = new AtomicInteger();
    final AtomicInteger removed = new AtomicInteger();

    @Override
    public void onTaskEnd(SparkListenerTaskEnd end) {
      if (end.taskType().equals("ShuffleMapTask") && end.taskInfo().successful()) {
        maps.incrementAndGet();
        if (end.taskInfo().speculative()) {
          speculative.incrementAndGet();
        }
      }
      if (end.taskInfo().failed()) {
        failed.incrementAndGet();
      }
      if (end.reason() instanceof FetchFailed) {
        failedFetches.incrementAndGet();
      }
    }

    @Override
    public void onExecutorRemoved(SparkListenerExecutorRemoved executor) {
      removed.incrementAndGet();
    }
  }

  Jobs(SparkSession session) {
    this.session = session;
    spark = new JavaSparkContext(session.sparkContext());
    session.sparkContext().addSparkListener(counts);
  }

  public static void main(String[] names) throws Exception {
    try (SparkSession session = SparkSession.builder().getOrCreate()) {
      for (String name : names) {
        Jobs jobs = new Jobs(session);
        long hash = jobs.run(name);
        // Listeners hear of what has happened a little later.
        session.sparkContext().listenerBus().waitUntilEmpty();
        System.out.printf(
            "{\"job\": \"%s\", \"hash\": \"%x\", \"maps\": %d, \"speculative\": %d, \"failed\": %d, \"failedFetches\": %d}%n",
            name, hash, jobs.counts.maps.get(), jobs.counts.speculative.get(), jobs.counts.failed.get(), jobs.counts.failedFetches.get());
        session.sparkContext().removeSparkListener(jobs.counts);
      }
    }
  }

  private long run(String name) throws Exception {
    return switch (name) {
      case "sort" -> hash(sorted());
      case "killed" -> killed();
      case "lost" -> lost();
      case "mixed" -> mixed();
      case "differs" -> differs();
      case "twice" -> twice();
      case "slow" -> slow();
      case "sql" -> sql();
      case "graph" -> graph();
      default -> throw new IllegalArgumentException("no job " + name);
    };
  }

  private JavaPairRDD<String, byte[]> sorted() {
    return records().sortByKey(true, PARTS);
  }

  /** Records of 100 bytes. */
  private JavaPairRDD<String, byte[]> records() {
    return spark.parallelize(IntStream.range(0, MAPS).boxed().toList(), MAPS).mapPartitionsToPair(of -> {
      int map = of.next();
      SplittableRandom random = new SplittableRandom(map);
      return IntStream.range(0, RECORDS).mapToObj(i -> {
        byte[] value = new byte[90];
        random.nextBytes(value);
        return new Tuple2<>(String.format("%010x", random.nextLong() & 0xff_ffff_ffffL), value);
      }).iterator();
    });
  }

  private static void pause(int milliseconds) {
    try {
      Thread.sleep(milliseconds);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** A hash of all keys and values in their order, wherever a part of them ends. */
  private static long hash(JavaPairRDD<String, byte[]> records) {
    long hash = 17;
    for (Tuple2<Long, Long> part : records.mapPartitions(Jobs::hash).collect()) {
      hash = hash * part._2() + part._1();
    }
    return hash;
  }

  /** The hash of some records, and by what that of all before them is multiplied. */
  private static Iterator<Tuple2<Long, Long>> hash(Iterator<Tuple2<String, byte[]>> records) {
    long hash = 0;
    long before = 1;
    String last = "";
    while (records.hasNext()) {
      Tuple2<String, byte[]> record = records.next();
      if (record._1().compareTo(last) < 0) {
        throw new IllegalStateException(record._1() + " comes after " + last);
      }
      last = record._1();
      long one = last.hashCode();
      for (byte b : record._2()) {
        one = one * 31 + b;
      }
      hash = hash * 1_000_003 + one;
      before *= 1_000_003;
    }
    return List.of(new Tuple2<>(hash, before)).iterator();
  }

  /** All maps are there when an executor is killed, and one part has been read. */
  private long killed() {
    JavaPairRDD<String, byte[]> records = sorted();
    records.first();
    counts.maps.addAndGet(-mapsSoFar()); // of which none shall run again
    long pid = spark.parallelize(List.of(0), 1).map(i -> ProcessHandle.current().pid()).first();
    ProcessHandle.of(pid).orElseThrow().destroyForcibly();
    await("executor is gone", () -> counts.removed.get() > 0);
    return hash(records);
  }

  private int mapsSoFar() {
    try {
      session.sparkContext().listenerBus().waitUntilEmpty();
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
    return counts.maps.get();
  }

  /** The first attempt of a map has all records, and does not end before another one has begun. */
  private long slow() {
    return hash(records().mapPartitionsToPair(of -> {
      TaskContext task = TaskContext.get();
      boolean late = task.partitionId() == 1 && task.attemptNumber() == 0;
      return late ? new Late(of) : of;
    }).sortByKey(true, PARTS));
  }

  /** Records after the last of which one waits until Spark ends the task. */
  private record Late(Iterator<Tuple2<String, byte[]>> of) implements Iterator<Tuple2<String, byte[]>> {
    @Override
    public boolean hasNext() {
      if (!of.hasNext()) {
        pause(600_000);
      }
      return of.hasNext();
    }

    @Override
    public Tuple2<String, byte[]> next() {
      return of.next();
    }
  }

  /** Once a map is committed, another attempt of it is, too, with other bytes, which no reader gets. */
  private long twice() {
    LongAccumulator committed = session.sparkContext().longAccumulator();
    int[] shuffle = {-1}; // it has a number once sortByKey has looked for ranges, which runs the maps, too
    JavaPairRDD<String, byte[]> records = records().mapPartitionsToPair(of -> {
      if (shuffle[0] >= 0) {
        TaskContext.get().addTaskCompletionListener((TaskCompletionListener) task -> {
          commitNonsense(shuffle[0]);
          committed.add(1);
        });
      }
      return of;
    });
    JavaPairRDD<String, byte[]> sorted = records.sortByKey(true, PARTS);
    shuffle[0] = ((ShuffleDependency<?, ?, ?>) sorted.rdd().dependencies().head()).shuffleId();
    long hash = hash(sorted);
    if (committed.value() != MAPS) {
      throw new IllegalStateException(committed.value() + " second attempts were committed, of " + MAPS + " maps");
    }
    return hash;
  }

  private static void commitNonsense(int shuffle) {
    SparkConf conf = SparkEnv.get().conf();
    ShuffleExecutorComponents components = ShuffleDataIOUtils.loadShuffleDataIO(conf).executor();
    components.initializeExecutor(conf.getAppId(), SparkEnv.get().executorId(), Map.of());
    try {
      ShuffleMapOutputWriter map = components.createMapOutputWriter(shuffle, 1_000_000 + TaskContext.getPartitionId(), PARTS);
      try (OutputStream out = map.getPartitionWriter(0).openStream()) {
        out.write("nonsense".getBytes(StandardCharsets.UTF_8));
      }
      map.commitAllPartitions(new long[0]);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** All maps are there when one is removed from the pool. */
  private long lost() {
    JavaPairRDD<String, byte[]> records = sorted();
    records.first();
    removeMap(pool(), 3);
    return hash(records);
  }

  /** The second of two shuffles has some maps when one of the first is lost. */
  private long mixed() {
    String dir = pool();
    JavaPairRDD<Long, Long> first = spark.parallelize(IntStream.range(0, 100_000).boxed().toList(), MAPS)
        .mapToPair(i -> new Tuple2<>((long) i % 1_000, (long) i))
        .partitionBy(new HashPartitioner(MAPS));
    JavaPairRDD<Long, Long> second = first.mapPartitionsToPair(records -> {
      TaskContext task = TaskContext.get();
      if (task.partitionId() == MAPS / 2 && task.stageAttemptNumber() == 0) {
        removeMap(dir, 0);
      }
      List<Tuple2<Long, Long>> all = new ArrayList<>();
      records.forEachRemaining(record -> all.add(new Tuple2<>(record._2() % 777, record._1() + record._2())));
      return all.iterator();
    }).reduceByKey(Long::sum, PARTS);
    return new TreeMap<>(second.collectAsMap()).hashCode();
  }

  /** The shuffle files in the pool; empty if they are elsewhere. */
  private String pool() {
    return session.sparkContext().conf().get("spark.rankfs.dir", "");
  }

  /** A map is lost whose bytes are others when it is run again: no reader may get some of each run. */
  private long differs() {
    JavaPairRDD<Integer, Integer> records = spark.parallelize(IntStream.range(0, 1_000).boxed().toList(), MAPS)
        .mapToPair(i -> new Tuple2<>(i, TaskContext.get().stageId()))
        .partitionBy(new HashPartitioner(PARTS));
    records.first();
    removeMap(pool(), 3);
    return records.values().distinct().count();
  }

  /** Removes a map of the last shuffle that has it from the pool. */
  private static void removeMap(String dir, int map) {
    if (dir.isEmpty()) {
      return;
    }
    Path last = null;
    int number = -1;
    try (DirectoryStream<Path> stages = Files.newDirectoryStream(Path.of(dir), "shuffle-*")) {
      for (Path stage : stages) {
        int shuffle = Integer.parseInt(stage.getFileName().toString().split("[-.]")[1]);
        if (shuffle > number && Files.exists(stage.resolve(String.format("map-%06d", map)))) {
          number = shuffle;
          last = stage;
        }
      }
      Files.delete(last.resolve(String.format("map-%06d", map)));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void await(String what, BooleanSupplier is) {
    for (int i = 0; i < 1_200; i++) {
      if (is.getAsBoolean()) {
        return;
      }
      pause(100);
    }
    throw new IllegalStateException("waited in vain: " + what);
  }

  /** A join in which one key has most of the records, and an aggregation with small parts. */
  private long sql() {
    session.range(0, 400_000, 1, MAPS)
        .selectExpr("if(id % 10 < 8, 7, id % 5000) k", "id v", "concat('value ', id * 7919) p")
        .createOrReplaceTempView("facts");
    session.range(0, 5_000, 1, MAPS).selectExpr("id k", "id % 117 g", "repeat(id, 5) name").createOrReplaceTempView("dims");
    Dataset<Row> rows = session.sql(
        "select g, count(*) n, sum(v) s, max(p) m, min(name) name from facts join dims using (k) group by g order by g");
    long hash = 17;
    for (Row row : rows.collectAsList()) {
      hash = hash * 31 + row.toString().hashCode();
    }
    String plan = rows.queryExecution().executedPlan().toString();
    for (String want : List.of("skew=true", "coalesced")) {
      if (!plan.contains(want)) {
        throw new IllegalStateException("the plan is without " + want + ": " + plan);
      }
    }
    return hash;
  }

  /** Some rounds of PageRank, by whole numbers, whose sums are the same in every order. */
  private long graph() {
    int pages = 20_000;
    JavaPairRDD<Integer, List<Integer>> links = spark.parallelize(IntStream.range(0, pages).boxed().toList(), MAPS)
        .mapToPair(page -> {
          SplittableRandom random = new SplittableRandom(page);
          List<Integer> to = new ArrayList<>();
          for (int i = random.nextInt(12); i >= 0; i--) {
            to.add((int) (pages * Math.pow(random.nextDouble(), 3)));
          }
          return new Tuple2<>(page, to);
        })
        .partitionBy(new HashPartitioner(PARTS))
        .cache();
    JavaPairRDD<Integer, Long> ranks = links.mapValues(to -> 1_000_000L);
    for (int round = 0; round < 4; round++) {
      ranks = links.join(ranks)
          .flatMapToPair(page -> page._2()._1().stream()
              .map(to -> new Tuple2<>(to, page._2()._2() / page._2()._1().size())).iterator())
          .reduceByKey(Long::sum)
          .mapValues(sum -> 150_000 + sum * 85 / 100);
    }
    Map<Integer, Long> all = new TreeMap<>(ranks.collectAsMap());
    long hash = 17;
    for (Map.Entry<Integer, Long> page : all.entrySet()) {
      hash = (hash * 31 + page.getKey()) * 31 + page.getValue();
    }
    return hash;
  }
}
