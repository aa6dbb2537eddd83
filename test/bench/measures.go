package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"rankfs/meta"
	"rankfs/shuffle/order"
)

var measures = []measure{
	{name: "first mmap pass, 256 MiB batch in ram / file on ext4, warm", target: 1.15, setup: passRAM},
	{name: "first mmap pass, 256 MiB batch on nvme / file on ext4, warm", target: 0.97, setup: passNVMe},
	{name: "cycle p50 of ready batches / files on tmpfs", target: 6, atMost: true, setup: cycle},
	{name: "supply 64 MiB, 1 rank, copied out / seed in C", target: 1.9, setup: supply(64<<20, 1, "-c", "-c")},
	{name: "supply 64 MiB, 2 ranks, copied out / seed in C", target: 1.9, setup: supply(64<<20, 2, "-c", "-c")},
	{name: "supply 64 MiB, 1 rank, summed in place / seed in C", target: 3, setup: supply(64<<20, 1, "-i", "-s")},
	{name: "supply 64 MiB, 2 ranks, summed in place / seed in C", target: 3, setup: supply(64<<20, 2, "-i", "-s")},
	{name: "supply 1 MiB, 1 rank, copied out / seed in C", target: 1.3, setup: supply(1<<20, 1, "-c", "-c")},
	{name: "supply 1 MiB, 2 ranks, copied out / seed in C", target: 1.3, setup: supply(1<<20, 2, "-c", "-c")},
	{name: "supply 1 MiB, 1 rank, summed in place / seed in C", target: 1.3, setup: supply(1<<20, 1, "-i", "-s")},
	{name: "supply 1 MiB, 2 ranks, summed in place / seed in C", target: 1.3, setup: supply(1<<20, 2, "-i", "-s")},
	{name: "epoch of a 2 GiB LMDB, order none, 2 ranks / C with cursors", target: 0.8, setup: epoch("none")},
	{name: "epoch of a 2 GiB LMDB, order full, 2 ranks / C with mdb_get", target: 1.5, setup: epoch("full")},
	{name: "dataset create, cold LMDB of 200,000 x 4 KiB / cursor walk", target: 0.1, atMost: true, setup: create},
	{name: "ls -f of 1,000,000 batches / as many names on ext4", target: 2, atMost: true, setup: list},
	{name: "others, first mmap pass of 256 MiB, page cache warm / JuiceFS", target: 2, setup: otherPass(juicefs, false)},
	{name: "others, first mmap pass of 256 MiB, page cache warm / rclone", target: 10, setup: otherPass(rclone, false)},
	{name: "others, first mmap pass of 256 MiB, page cache dropped / JuiceFS", target: 10, setup: otherPass(juicefs, true)},
	{name: "others, first mmap pass of 256 MiB, page cache dropped / rclone", target: 20, setup: otherPass(rclone, true)},
	{name: "others, cycle p50 of files read before / JuiceFS", target: 0.5, atMost: true, setup: otherCycle(juicefs)},
	{name: "others, cycle p50 of files read before / rclone", target: 0.3, atMost: true, setup: otherCycle(rclone)},
	{name: "others, ls -f of 20,000 names / JuiceFS", target: 1, atMost: true, setup: otherList(juicefs)},
	{name: "others, ls -f of 20,000 names / rclone", target: 1, atMost: true, setup: otherList(rclone)},
	{name: "cached, cold nvme, an epoch through the mount / fio, sequential and direct", target: 0.95, setup: coldNVMe},
	{name: "cached, warm nvme, second epoch / plain files on that disk", target: 0.97, setup: warmNVMe},
	{name: "hdfs, 1 GiB by one stream into slabs / Hadoop's client to nowhere", target: 1, setup: hdfsStreams(1, perSecond)},
	{name: "hdfs, 1 GiB by four streams / the same", target: 1, setup: hdfsStreams(4, perSecond)},
	{name: "hdfs, processor time of a GiB, one stream / the same", target: 0.7, atMost: true, setup: hdfsStreams(1, cpuPerGiB)},
	{name: "hdfs local, 2 GiB by one stream into slabs / Hadoop's client by short-circuit to nowhere", target: 1.2, setup: localBlocks(byFile, perSecond)},
	{name: "hdfs local, the same / Hadoop's client over TCP", target: 3, setup: localBlocks(overTCP, perSecond)},
	{name: "hdfs local, processor time of client and datanode for a GiB / Hadoop's client by short-circuit", target: 0.8, atMost: true, setup: localBlocks(byFile, cpuPerGiB)},
	{name: "hdfs local, 2 GiB by one stream from a cold disk / fio, sequential and direct", target: 0.9, setup: coldBlocks},
	{name: "hdfs local, order=full of 4 KiB records, data four times the cache / the same over TCP", target: 3, setup: shuffledBlocks},
	{name: "hdfs, locations of 100,000 files of a block / hdfs dfs -ls", target: 1, atMost: true, setup: locations},
	{name: "pool, maps of 64 MiB by 1 MiB writes, and rename / tmpfs and XXH3 of the file", target: 0.85, setup: poolWrites("GB/s", true, 24, 64*mib)},
	{name: "pool, maps of 16 MiB by 4 KiB writes of stdio, and rename / tmpfs", target: 0.7, setup: poolWrites("GB/s", false, 64, 16*mib, "-s")},
	{name: "pool, p50 of create, write 1 MiB, close, rename / tmpfs", target: 6, atMost: true, setup: poolWrites("p50_ns", false, 500, mib, "-p", "1")},
	{name: "pool, 2 GiB, 64 maps and 64 parts: write, commit, read / a data and an index file a map, parts by pread", target: 1.2, atMost: true, setup: poolShuffle},
	{name: "pool, 2 GiB, 512 maps and 512 parts / 32 and 32, in memory", target: 1.3, atMost: true, setup: poolSquares},
	{name: "pool, all-to-all of 4 ranks x 256 MiB, one host / MPI_Alltoallv", target: 2.5, atMost: true, setup: poolExchange},
	{name: "pool, 2 GiB of lines sorted, 16 maps and 8 ranges / sort --parallel", target: 0.7, atMost: true, setup: poolSort},
	{name: "pool, the same of sorted maps / sort -m", target: 0.6, atMost: true, setup: poolMerge},
	{name: "pool, words of 1 GiB of text counted by combine=sum / awk, sort and uniq", target: 0.5, atMost: true, setup: poolWords},
	{name: "pool, the same / a table of mawk", target: 1, atMost: true, setup: poolWordTable},
	{name: "pool, 1 GiB of lines sorted, 99 of 100 in one part, read by ranges of maps / spread evenly", target: 1.3, atMost: true, setup: poolSkew},
	{name: "pool, 2 GiB of GenSort's records sorted, 16 maps and 8 ranges / Hadoop's TeraSort", target: 0.3, atMost: true, setup: poolTera},
	{name: "pool, the same / PySpark's sortByKey", target: 0.4, atMost: true, setup: poolPySpark},
	{name: "pool, TeraSort of 2 GiB on Spark, 2 executors, with the plug-in / without", target: 1.1, atMost: true, setup: sparkTera()},
	{name: "pool, the same from when an executor is killed after the maps", target: 0.6, atMost: true, setup: sparkTera("killed")},
}

var figures = []figure{
	{"resident memory at rest, 10 M records and 4 GiB of slabs", "MiB", 300, memory},
	{"from SIGKILL of the daemon to the first batch of the next", "s", 5, restart},
	{"pool, memory of the daemon beside its files, after 1,000 maps and 1,000 parts", "MiB", 32, poolMemory},
	{"pool, memory of the daemon that no file has, while 2 GiB of lines are sorted, at most", "MiB", 64, poolSortMemory},
}

var studies = []study{
	{"cluster locality", locality},
	{"cluster links", links},
	{"cluster planning", planning},
	{"cluster petabyte plan", petabytePlan},
	{"cluster peers", fromPeer},
	{"cluster wire", wireShare},
	{"cluster shuffle", beyond},
	{"cluster group", opensUnderWrites},
	{"cluster leader after kill", leaderAfterKill},
	{"cluster leader of five after kill", leaderOfFiveAfterKill},
	{"cluster petabyte", petabyte},
	{"cluster queue", queuePolicies},
	{"hdfs, bytes from datanodes", sent},
	{"pool cold", poolCold},
	{"pool blobs", poolBlobs},
	{"pool links", poolLinks},
	{"pool compressed links", poolCompressed},
	{"pool exchanges", poolExchanges},
	{"pool commits", poolCommits},
	{"pool bytes", poolBytes},
	{"pool node lost", poolKilled},
	{"cached stalls", stalls},
	{"cached partitions", partitions},
	{"learn kmeans", learner{"kmeans", nil, []string{"all"}}.measure},
	{"learn lda", learner{"lda", nil, []string{"all"}}.measure},
	{"learn logreg", learner{"logreg", nil, []string{"train", "test"}}.measure},
	{"learn knn", learner{"knn", []string{"rawtest", "rawtrain"}, []string{"test", "train"}}.measure},
	{"simulate neutrino", neutrino},
	{"simulate hits", hitRatios},
	{"simulate epochs", forecasts},
	{"simulate links", linkForecasts},
}

// one makes a dataset of a single batch of 256 MiB, and the same bytes in a
// file on the disk.
func (b *bench) one(options ...string) (batch, file string) {
	file = b.data("pass.bin", "fixed", "-n", "256", "-size", "1048576")
	b.mount(options...)
	batch = b.create("pass", "file:"+file, "--as", "fixed:1048576", "--batch", "256") + "/rank-0/batch-000000"
	read(batch, file)
	return batch, file
}

func passRAM(b *bench) (ours, theirs func() float64) { return b.pass(b.one("--ram", "1GiB")) }
func passNVMe(b *bench) (ours, theirs func() float64) {
	return b.pass(b.one("--ram", "64MiB", "--nvme", filepath.Join(b.dir, "nvme")+":2GiB"))
}

func (g *ground) pass(batch, file string) (ours, theirs func() float64) {
	side := func(path string) func() float64 {
		return func() float64 { return value(g.tool("pass", path), "GB/s") }
	}
	return side(batch), side(file)
}

func cycle(b *bench) (ours, theirs func() float64) {
	const batches = 64
	data := b.data("cycle.bin", "fixed", "-n", fmt.Sprint(batches*16), "-size", "65536")
	b.mount("--ram", "1GiB")
	batch := b.create("cycle", "file:"+data, "--as", "fixed:65536", "--batch", "16") + "/rank-0"
	local := filepath.Join(b.shm, "rank-0")
	quiet("cp", "-r", batch, local)
	return b.cycles(batch), b.cycles(local)
}

func (g *ground) cycles(dir string) func() float64 {
	read(glob(dir + "/batch-??????")...)
	return func() float64 {
		return value(g.tool("cycle", "-n", "64", "-r", "100", dir), "p50_ns")
	}
}

// supply compares a rank that maps ready batches with one that is fed by the
// seed's protocol: a server in C that copies each into a shared file and says
// so through a pipe. Both go round in 512 MiB a rank, more than the
// processor's caches hold.
func supply(size, ranks int, oursMode, theirsMode string) func(*bench) (ours, theirs func() float64) {
	return func(b *bench) (ours, theirs func() float64) {
		const each = 512 << 20
		cycles := fmt.Sprint(max(32, (4<<30)/size/ranks))
		if size < 1<<22 {
			cycles = fmt.Sprint(4096)
		}
		n := each / size * ranks
		data := b.data(fmt.Sprintf("supply-%d-%d.bin", size, ranks), "fixed", "-n", fmt.Sprint(n), "-size", fmt.Sprint(size))
		b.mount("--ram", "3GiB")
		dir := b.create("supply", "file:"+data, "--as", fmt.Sprintf("fixed:%d", size), "--batch", "1", "--ranks", fmt.Sprint(ranks))
		for r := range ranks {
			read(glob(fmt.Sprintf("%s/rank-%d/batch-??????", dir, r))...)
		}
		own := dir
		if ranks == 1 {
			own += "/rank-0"
		}
		ours = func() float64 {
			args := []string{own, cycles, oursMode}
			if ranks > 1 {
				args = append(args, "-p", fmt.Sprint(ranks))
			}
			return value(b.tool("cycle_consume", args...), "GB/s")
		}
		return ours, func() float64 { return b.seed(size, ranks, cycles, theirsMode) }
	}
}

func (g *ground) seed(size, ranks int, cycles, mode string) float64 {
	var maps, pipes strings.Builder
	for r := range ranks {
		fmt.Fprintf(&maps, "%s/map-%d\n", g.shm, r)
		fmt.Fprintf(&pipes, "%s/pipe-%d\n", g.shm, r)
	}
	mapsFile, pipesFile := filepath.Join(g.shm, "maps"), filepath.Join(g.shm, "pipes")
	check(os.WriteFile(mapsFile, []byte(maps.String()), 0600))
	check(os.WriteFile(pipesFile, []byte(pipes.String()), 0600))
	server := exec.Command(filepath.Join(g.root, "test/mpi/bin/seed_server"), mapsFile, pipesFile, fmt.Sprint(size), cycles, "-m", "512")
	check(server.Start())
	args := []string{mapsFile, pipesFile, "0", cycles, mode}
	if ranks > 1 {
		args = append(args, "-p", fmt.Sprint(ranks))
	}
	v := value(g.tool("seed_client", args...), "GB/s")
	check(server.Wait())
	return v
}

// epoch compares two ranks that sum an epoch in place with two processes that
// get the same values from LMDB, copy and sum them. The page cache is warm; no
// batch is: memory holds an eighth of the epoch, and every turn is another one.
// A batch is 32 MiB in both orders: what an open and a wake cost beside the copy
// is then lost in it, as in any job whose step takes longer than its opens.
func epoch(o string) func(*bench) (ours, theirs func() float64) {
	return func(b *bench) (ours, theirs func() float64) {
		const records, ranks, batch = 524288, 2, 8192
		keys := filepath.Join(b.dir, "epoch.keys")
		db := filepath.Join(b.dir, "epoch.lmdb")
		if _, err := os.Stat(db); err != nil {
			b.data("epoch.lmdb", "lmdb", "-n", fmt.Sprint(records), "-size", "4096", "-keys", keys)
		}
		dropCaches() // so that the cache is as a reader fills it, not as its writer left it
		read(glob(db + "/data.mdb")...)
		b.mount("--ram", "256MiB")
		dir := b.create("epoch", "lmdb:"+db, "--ranks", fmt.Sprint(ranks), "--batch", fmt.Sprint(batch), "--order", o)
		turn := uint64(0)
		var sum string
		ours = func() float64 {
			turn++
			before := b.status().Counters.Fills
			out := b.tool("epoch", "-p", fmt.Sprint(ranks), "mount", fmt.Sprintf("%s@epoch=%d", dir, turn))
			if filled := b.status().Counters.Fills - before; filled < records/batch*9/10 {
				check(fmt.Errorf("only %d batches of %d were filled in this turn", filled, records/batch))
			}
			sum = word(out, "sum")
			return value(out, "GB/s")
		}
		theirs = func() float64 {
			args := []string{"-p", fmt.Sprint(ranks), "cursor", db}
			if o == "full" {
				args = []string{"-p", fmt.Sprint(ranks), "keys", db, shuffled(keys, turn, ranks, batch)}
			}
			out := b.tool("epoch", args...)
			if s := word(out, "sum"); s != sum {
				check(fmt.Errorf("the sides read different bytes: sums %s and %s", sum, s))
			}
			return value(out, "GB/s")
		}
		return ours, theirs
	}
}

// shuffled writes the keys in the order in which the ranks of an epoch get
// them, the first half for the first rank.
func shuffled(keys string, epoch, ranks, batch uint64) string {
	text, err := os.ReadFile(keys)
	check(err)
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	n := uint64(len(all))
	o := order.New(meta.Order{Kind: meta.OrderFull}, n, 0, epoch)
	cut := meta.Cut{N: n, Global: ranks * batch, Ranks: ranks}
	var out strings.Builder
	for r := range ranks {
		for s := range cut.Steps() {
			span := cut.Span(r, s)
			for p := span.First; p < span.First+span.Count; p++ {
				out.WriteString(all[o.At(p)])
				out.WriteByte('\n')
			}
		}
	}
	file := keys + ".shuffled"
	check(os.WriteFile(file, []byte(out.String()), 0600))
	return file
}

func create(b *bench) (ours, theirs func() float64) {
	db := b.data("create.lmdb", "lmdb", "-n", "200000", "-size", "4096")
	b.mount("--ram", "256MiB")
	n := 0
	ours = func() float64 {
		n++
		dropCaches()
		return seconds(func() { b.create(fmt.Sprintf("create-%d", n), "lmdb:"+db) })
	}
	theirs = func() float64 {
		dropCaches()
		return value(b.tool("walk", db), "seconds")
	}
	return ours, theirs
}

func list(b *bench) (ours, theirs func() float64) {
	ours, local := b.lists(1_000_000)
	return ours, func() float64 { return seconds(func() { quiet("ls", "-f", local) }) }
}

// lists lists that many batches, each time of a view that the kernel has no listing
// of yet; and there are files with these names.
func (b *bench) lists(batches int) (ours func() float64, local string) {
	data := b.data(fmt.Sprintf("list-%d.bin", batches), "fixed", "-n", fmt.Sprint(batches), "-size", "8")
	b.mount("--ram", "256MiB")
	dir := b.create("list", "file:"+data, "--as", "fixed:8", "--batch", "1")
	local = filepath.Join(b.dir, fmt.Sprintf("list-%d", batches))
	if _, err := os.Stat(local); err != nil {
		check(os.Mkdir(local, 0700))
		for i := range batches {
			for _, suffix := range []string{"", ".idx"} {
				f, err := os.Create(fmt.Sprintf("%s/batch-%06d%s", local, i, suffix))
				check(err)
				f.Close()
			}
		}
	}
	epoch := 0
	return func() float64 {
		epoch++
		s := seconds(func() { quiet("ls", "-f", fmt.Sprintf("%s@epoch=%d/rank-0", dir, epoch)) })
		if c := b.status().Counters; c.Fills != 0 {
			check(fmt.Errorf("a listing fetched %d batches", c.Fills))
		}
		return s
	}, local
}

func memory(b *bench) float64 {
	db := b.data("memory.lmdb", "lmdb", "-n", "10000000", "-size", "410")
	b.mount("--ram", "4GiB")
	dir := b.create("memory", "lmdb:"+db, "--ranks", "2", "--batch", "4096", "--order", "full")
	b.tool("epoch", "mount", dir)               // every record by the index, in no order
	b.tool("epoch", "mount", dir+"@order=none") // and all of memory in slabs
	s := b.status()
	if used := s.Tiers[0].Used; used < 4<<30*9/10 {
		check(fmt.Errorf("only %d bytes of slabs", used))
	}
	// While it is read from, a source that is in the page cache is mapped, and
	// counts. That is said beside the figure and not hidden in it.
	fmt.Printf("    right after reading, with the source mapped: %.0f MiB\n", resident(s.PID))
	time.Sleep(4 * time.Second)
	return resident(s.PID)
}

func restart(b *bench) float64 {
	data := b.data("cycle.bin", "fixed", "-n", "1024", "-size", "65536")
	nvme := filepath.Join(b.dir, "nvme") + ":1GiB"
	b.mount("--ram", "16MiB", "--nvme", nvme)
	dir := b.create("restart", "file:"+data, "--as", "fixed:65536", "--batch", "16") + "/rank-0"
	batches := glob(dir + "/batch-??????")
	read(batches...)
	start := time.Now()
	b.node.Kill()
	b.mount("--ram", "16MiB", "--nvme", nvme)
	read(batches[0])
	return time.Since(start).Seconds()
}
