package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"rankfs/test/spark"
)

// A sparked sorts the records of a tera by Spark.
type sparked struct {
	*tera
	home spark.Home
}

func (t *tera) onSpark() *sparked {
	home, err := spark.Prepare(context.Background(), filepath.Join(t.b.root, "test/spark"))
	check(err)
	return &sparked{t, home}
}

// run submits an application, which is told where the records are, where it shall write its
// parts, how many, and args. Its local files, as its parts, are in memory.
func (s *sparked) run(options []string, program string, args ...string) string {
	dir := s.scratch()
	defer os.RemoveAll(dir)
	defer s.home.Clean()
	out := dir + "/out"
	check(os.Mkdir(out, 0o700))
	line := append([]string{
		"--driver-java-options", "-XX:+UseParallelGC",
		"--conf", "spark.executor.extraJavaOptions=-XX:+UseParallelGC",
		"--conf", "spark.ui.enabled=false",
		"--conf", "spark.local.dir=" + dir,
		"--conf", "spark.hadoop.mapreduce.input.fileinputformat.split.minsize=1073741824", // a map for each file
	}, options...)
	line = append(append(line, program, s.in, out, fmt.Sprint(recordParts)), args...)
	said := printed(s.home.Submit(context.Background(), dir, line...))
	s.validate(glob(out + "/part-*")...)
	return said
}

// poolPySpark compares a sort by the pool with sortByKey of PySpark.
func poolPySpark(b *bench) (ours, theirs func() float64) {
	s := b.tera().onSpark()
	program := filepath.Join(b.root, "test/spark/sort.py")
	options := []string{"--master", fmt.Sprintf("local[%v]", cores()), "--driver-memory", "3g", "--conf", "spark.python.worker.memory=1g"}
	return s.byPool().turn, func() float64 { return value(s.run(options, program), "seconds") }
}

// sparkTera compares TeraSort on two executors that have their shuffle files in the pool with the
// same that have them themselves; or if it is "killed", what is left to do from when one of them
// is, as soon as all maps are there.
func sparkTera(args ...string) func(*bench) (ours, theirs func() float64) {
	return func(b *bench) (ours, theirs func() float64) {
		s := b.tera().onSpark()
		p := b.pool()
		run := func(more ...string) (seconds float64, maps int) {
			out := s.run(append([]string{
				"--master", "local-cluster[2,1,3072]", "--class", "Tera", "--driver-memory", "1g",
				"--conf", "spark.executor.memory=3g", "--conf", "spark.serializer=org.apache.spark.serializer.KryoSerializer",
			}, more...), s.home.Jobs(), args...)
			return value(out, "seconds"), int(value(out, "maps"))
		}
		ours = func() float64 {
			seconds, maps := run(s.home.InPool(p.job())...)
			b.awaitNoJobs()
			if len(args) > 0 && maps > 0 {
				check(fmt.Errorf("%d maps ran again, though the pool has them", maps))
			}
			return seconds
		}
		return ours, func() float64 {
			seconds, maps := run()
			if len(args) > 0 && maps == 0 {
				check(fmt.Errorf("no map ran again: nothing was lost with the executor"))
			}
			return seconds
		}
	}
}
