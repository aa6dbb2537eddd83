package forecast

import (
	"testing"

	"rankfs/cmd/internal/control"
)

// What is simulated fetches chunks whole, and waits for each as for HDFS, where the
// daemon does: an LMDB in HDFS is read from a local copy.
func TestScenarioIsByTheSource(t *testing.T) {
	for source, remote := range map[string]bool{
		"file:/a": false, "lmdb:/a": false, "hdfs://nn:8020/a": true, "hdfs:///a?as=sequence": true,
		"hdfs://nn:8020/a?as=lmdb": false, "hdfs:///a?db=x&as=lmdb": false, "": false,
	} {
		set := control.Dataset{
			Name: "d", Source: source, Records: 1 << 20, Bytes: 64 << 30, Chunks: 512, Ranks: 8, Batch: "1000", Order: "full", Tail: "keep",
		}
		v, err := viewOf(set, "")
		if err != nil {
			t.Fatal(err)
		}
		s, _ := (&Job{set: set, view: v, nodes: 2, epochs: 2, ram: 64 << 30}).scenario(10_000)
		if waits, parts := s.Costs.Latency > 0, s.Grains > 0; waits != remote || parts != remote || s.Once == remote {
			t.Errorf("%q: a fetch waits: %v, batches are made of chunks: %v, each chunk is read once: %v", source, waits, parts, s.Once)
		}
	}
}

// Chunks are kept where the daemon keeps them: not for a window whose runs of the
// source are shorter than a chunk, nor where the nodes have room for less.
func TestChunksAreKeptAsTheDaemonKeepsThem(t *testing.T) {
	for _, test := range []struct {
		order string
		ram   int64
		kept  bool
	}{
		{"full", 64 << 30, true}, {"full", 16 << 30, false},
		{"window:65536", 16 << 30, true}, // of runs of two chunks
		{"window:65536", 8 << 30, false},
		{"window:16384", 16 << 30, false}, // of half a chunk
	} {
		set := control.Dataset{
			Name: "d", Source: "hdfs://nn:8020/a", Records: 1 << 20, Bytes: 64 << 30, Chunks: 512, Ranks: 8, Batch: "1000", Order: test.order, Tail: "keep",
		}
		v, err := viewOf(set, "")
		if err != nil {
			t.Fatal(err)
		}
		if s, _ := (&Job{set: set, view: v, nodes: 2, epochs: 2, ram: test.ram}).scenario(10_000); s.Once == test.kept {
			t.Errorf("order=%s, memory of %d bytes: chunks are kept: %v", test.order, test.ram, !s.Once)
		}
	}
}
