# build and install need Go and a C compiler. What the others need besides, they
# install on Debian as root (test/deps).
GO      ?= go
PREFIX  ?= /usr/local
VERSION := $(shell git describe --always --dirty 2>/dev/null || echo unknown)

# Where these shells look for completions.
BASH = $(DESTDIR)$(PREFIX)/share/bash-completion/completions
ZSH  = $(DESTDIR)$(PREFIX)/share/zsh/site-functions
FISH = $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d

# Whether what is outside of PREFIX can be written.
OUTER := $(if $(DESTDIR),yes,$(filter 0,$(shell id -u)))

# The LMDB that lmdb-go brings along is of 2016; today's gcc has remarks.
export CGO_CFLAGS = -O2 -g -w

# What tests build has nothing for a debugger: compilers take a fifth less for it, and the
# linker of a daemon two fifths.
test check: export GOFLAGS := $(shell $(GO) env GOFLAGS) -gcflags=all=-dwarf=false -ldflags=-w

# Neither the race detector nor GOMAXPROCS reaches daemons that are processes of their own
# on a cluster's hosts, and in PURE neither a package nor its tests start a goroutine or
# lock anything; of a record, a context that ends sets an atomic. With one processor those
# differ whose goroutines wait for each other. Both are runs of their own beside that of
# make test, and -short: some go fewer rounds. In make check the race detector sees neither
# these, nor clients of an HDFS, whose tests wait for it most of the time, nor benchmarks;
# neither run has those in BRIM, in which one goroutine fills a state to its bound, reads a
# long order on its own, has very many batches, chunks or slabs, simulates a cache, or
# damages each byte in turn, or which hold a policy of the cache to the best one, to none or
# to whole steps, or jobs to what each has alone, but for four jobs side by side; nor is the
# system tested with one processor, as its daemons wait for the disk: make soak has all these.
OUTSIDE = -e test/cluster -e test/hadoop -e test/secure -e test/nodes -e test/plans -e test/hdfs -e test/upgrade -e test/copies \
	-e 'fetch/hdfs$$' -e fetch/hdfs/datanode -e fetch/hdfs/namenode -e test/bench \
	$(PURE)
PURE    = -e cache/ahead -e cache/fair -e cache/ledger -e cache/policy -e cache/simulate -e cache/trace \
	-e fetch/index -e fetch/sequence -e fetch/uri -e 'rankfs/meta$$' -e meta/assign -e meta/durable -e meta/fault -e meta/heap -e meta/lists -e meta/queue \
	-e shuffle/order -e shuffle/placement -e shuffle/record -e cmd/internal/failure -e cmd/internal/forecast -e cmd/internal/mounting -e cmd/internal/survey -e cmd/internal/terminal \
	-e 'rankfs/test$$' -e test/makedata
BRIM    = ^Test(RankMap|Suspect|Plan|Reader|Distant|Record)Bounds$$|^TestHits(FarAhead|OnDisk|OfSeveralJobs|OfJobsOnOneView|OnALearntRoute)?$$|^Test(DepartsFromTheRoute|NoJobWaitsMoreThanAlone|StepsStayWhole)$$|^TestFillsOfJobsAtRandom$$|^TestBytes(PerBatch|PerSlab|BesideSmallBatches)$$|^Test(ManyChunks|EveryBit|IndexDamaged|SnapshotDamage)$$|^TestScripts$$/^simulate(_new)?$$
DAEMONS = -e test/nodes -e test/plans -e test/hdfs -e test/upgrade -e test/copies
INSIDE = $$($(GO) list ./... | grep -v $(OUTSIDE))
ALONE  = $$($(GO) list ./meta/group ./cache ./fs/... ./cache/disks ./fetch/peers ./cmd/internal/... ./meta/wire | grep -v $(PURE))

# Packages go in the order that they are named in. These wait for a cluster's daemons
# most of the time, so they go first, and beside them those that take longest: none of
# them is to be the last one, which has all processors for itself. As many wait at a time,
# there is one package more at a time than processors; with two more, tests of daemons wait
# for each other's. The vet of go test is left out: that of make check says more.
# Those beside each other that want the same HDFS find it there: when ./fetch/hdfs ends,
# ./test/nodes and ./test/system have ended before it, and what is next wants that of
# ./fetch/hdfs.
WAITING = ./test/nodes ./test/hdfs ./fetch/hdfs ./test/system ./meta/group ./fetch/hdfs/... ./test/copies ./test/cluster/... ./cache ./test/secure ./test/plans ./test/upgrade
LONG    = ./test/system ./meta/group ./cache

.PHONY: build demo test check check-source check-race check-alone soak bench spark install install-outer install-unit deps clean hdfs-up hdfs-down

build:
	$(GO) build -trimpath -ldflags '-X main.release=$(VERSION)' -o bin/rankfs ./cmd/rankfs

demo: deps build
	$(MAKE) -s -C test/mpi
	test/demo

# Maven loads the jars of HDFS while Go builds. If it cannot, the first test that needs
# them tries again, and says why.
test: deps
	@test/hadoop/prepare >/dev/null 2>&1 &
	$(MAKE) -s -C test/mpi
	$(GO) test -vet=off -p $$(($$(nproc) + 1)) -timeout 60m $(WAITING) ./...

# What reads the source, and the packages that have one processor, of which the longest
# wait for an election, go beside the race detector.
check: deps
	@test -z "$$(gofmt -l cmd cache fetch fs meta shuffle test)" || { gofmt -d cmd cache fetch fs meta shuffle test; false; }
	$(MAKE) -s -C test/mpi
	$(MAKE) -j3 check-source check-race check-alone

check-source:
	$(GO) vet ./...
	GOGC=400 $(GO) tool staticcheck ./...

# A program with the race detector waits for a second before it ends, if it is not told. The
# detector does not look into the arithmetic of signatures and of keys that are agreed on,
# which is a third of what nodes do that find each other, nor into that of compressors,
# which is as much of what a cache does: its numbers are of one call.
check-race: export GOFLAGS += '-gcflags=crypto/internal/fips140/edwards25519/...=$(ARITHMETIC)' '-gcflags=crypto/internal/fips140/mlkem=$(ARITHMETIC)' '-gcflags=github.com/klauspost/compress/...=$(ARITHMETIC)'
check-race: ARITHMETIC = -dwarf=false -race=false
check-race:
	GORACE=atexit_sleep_ms=0 $(GO) test -vet=off -race -short -skip '$(BRIM)' -p $$(($$(nproc) + 1)) -timeout 45m -count 1 $(LONG) $(INSIDE)

check-alone:
	GOMAXPROCS=1 $(GO) test -vet=off -short -skip '$(BRIM)' -p 2 -timeout 45m -count 1 $(ALONE)

# Histories of a cluster under random faults, ten minutes of a cache that all users
# may read and change, 200 daemons that are killed and replaced, a million batches
# in memory, ten jobs at a time, 200 stages of a shuffle under random faults, a daemon
# that is stopped for a minute, a part of 8 GiB and a stage of 2^18 maps, and what fsx and
# pjdfstest do to its files; a failure prints its seed. Each fuzz target for half a minute,
# and the race detector over what make check leaves out: pure packages, clients of an HDFS
# that fails, the cache and the wire with all their cases, and the daemons of clusters. Then
# nodes of three and of five that are killed or stopped one after the other, 1 s to 5 min
# apart, in every order, and each of three stopped for a minute while another is killed.
soak: deps
	$(GO) test -count 1 -timeout 3h -run TestHistoriesAreLinearizable -v ./meta/group -histories 200
	$(GO) test -count 1 -timeout 1h -run TestManySmallFiles ./test/hdfs -filled
	$(GO) test -count 1 -timeout 1h -run TestSoak -v ./cache -soak 10m
	$(MAKE) -s -C test/mpi
	$(GO) test -count 1 -timeout 1h -run TestTakeOver -v ./test/system -takeovers 200
	$(GO) test -count 1 -timeout 1h -run TestSmallBatches -v ./test/system -batches 1000000
	$(GO) test -count 1 -timeout 1h -run TestSizesOfManyLines -v ./test/system -lines 64000000
	$(GO) test -count 1 -timeout 1h -run TestHitsOfSeveralJobs -v ./test/system -jobs
	$(GO) test -count 1 -timeout 1h -run TestPoolCensus -v ./test/system -census 100
	$(GO) test -count 1 -timeout 1h -run TestStoppedDaemon -v ./test/system -stopped 1m
	$(GO) test -count 1 -timeout 1h -run TestLargePart -v ./test/system -part-mib 8192
	$(GO) test -count 1 -timeout 1h -run TestLongRecords -v ./test/system -record-mib 1024
	$(GO) test -count 1 -timeout 2h -run TestManyMaps -v ./test/system -pool-maps 262144
	$(GO) test -count 1 -timeout 3h -run TestPoolCensus -v ./test/nodes -census 100
	test/posix 20 20000
	test/fuzz 30s
	$(GO) test -race -timeout 1h -count 1 $$($(GO) list ./... | grep $(OUTSIDE) | grep -v $(DAEMONS)) ./cache ./cache/disks ./cache/pack ./cmd/internal/views ./cmd/rankfs ./meta/state ./meta/wire
	GOMAXPROCS=1 $(GO) test -timeout 1h -count 1 ./test/system ./cache ./cache/disks ./cmd/internal/views ./meta/wire
	RANKFS_TEST_RACE=1 GORACE=halt_on_error=1 $(GO) test -timeout 2h -p 1 -parallel 1 -count 1 $$($(GO) list ./... | grep $(DAEMONS))
	$(GO) test -count 1 -timeout 1h -run TestHitsOfSeveralJobs -v ./cache -hour 1h
	$(GO) test -count 1 -timeout 1h -run TestNoJobWaitsMoreThanAlone ./cache -lots 130
	$(GO) test -count 1 -timeout 5h -run 'TestNodesFailInTurn|TestNodesStopInTurn|TestFiveNodes' -v ./test/nodes -sweep

# What to measure is for BENCH to say: BENCH=-list, BENCH='-only NAME'.
bench: deps build
	@test/deps iperf3 redis-server python3
	$(MAKE) -s -C test/mpi
	$(GO) run ./test/bench $(BENCH)

# The plug-in for Spark, beside Spark without it: this downloads PySpark, some 430 MB.
spark: deps
	@test/deps python3
	$(GO) test -tags spark -count 1 -timeout 2h -v ./test/spark

# A real HDFS on hosts of its own, to try things on; see test/cluster.
hdfs-up: deps
	@$(GO) run ./test/cluster/keeper up

hdfs-down:
	@$(GO) run ./test/cluster/keeper down

# What mount(8) and systemd look for is outside of PREFIX: without root, and
# without a DESTDIR, it is left out, and said.
install: build $(if $(OUTER),install-outer)
	install -D -m 0755 bin/rankfs $(DESTDIR)$(PREFIX)/bin/rankfs
	install -D -m 0644 docs/rankfs.8 $(DESTDIR)$(PREFIX)/share/man/man8/rankfs.8
	install -D -m 0644 docs/dli.3 $(DESTDIR)$(PREFIX)/share/man/man3/dli.3
	install -d $(DESTDIR)$(PREFIX)/include && install -m 0644 include/rankfs.h include/dli.h $(DESTDIR)$(PREFIX)/include
	install -d $(BASH) && bin/rankfs completion bash > $(BASH)/rankfs
	install -d $(ZSH) && bin/rankfs completion zsh > $(ZSH)/_rankfs
	install -d $(FISH) && bin/rankfs completion fish > $(FISH)/rankfs.fish

	@[ -n "$(OUTER)" ] || echo "left out, as this is not root: the helpers of mount(8) and the unit of systemd"

install-outer: install-unit
	install -d $(DESTDIR)/sbin
	for helper in mount.rankfs umount.fuse.rankfs; do ln -sf $(PREFIX)/bin/rankfs $(DESTDIR)/sbin/$$helper; done

# The unit of systemd, with the place that rankfs is installed in.
install-unit:
	install -d $(DESTDIR)/etc/systemd/system
	sed 's|/usr/local/bin/|$(PREFIX)/bin/|' docs/rankfs@.service > $(DESTDIR)/etc/systemd/system/rankfs@.service
	chmod 0644 $(DESTDIR)/etc/systemd/system/rankfs@.service

deps:
	@test/deps

clean: hdfs-down
	rm -rf bin test/hadoop/build test/spark/build shuffle/spark/target && $(MAKE) -s -C test/mpi clean
