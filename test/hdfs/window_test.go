package hdfs_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"rankfs/test/cluster"
)

// A shuffle over more than the cache keeps fetches each record by itself, as create
// says. With the window that it names chunks are fetched whole, and hardly any twice.
func TestWindowThatIsNamed(t *testing.T) {
	const size, record = 48 << 20, 4 << 10
	c := cluster.Mounts(t)
	path := c.Dir(t) + "/f"
	content := make([]byte, size)
	rand.NewChaCha8([32]byte{}).Read(content)
	c.Host("data2").Put(t, path, content, 2, block)
	d := newPlace(t, c, "data1", "--ram", "16MiB").start()
	created := d.create("train", path+"?as=fixed:"+fmt.Sprint(record), "--batch", "64", "--order", "full")
	_, window, ok := strings.Cut(created, "note: order: order=full comes back to a chunk after more bytes than the ")
	if ok {
		_, window, ok = strings.Cut(window, "each record is fetched by itself: with --order ")
	}
	if said := d.Do("--json", "dataset", "show", "train"); !ok || !strings.Contains(said, "--order "+window[:strings.IndexByte(window, ' ')+1]) {
		t.Fatalf("create says %q, and show %q", created, said)
	}
	window, _, _ = strings.Cut(window, " ")
	for epoch := range 2 {
		before := d.status().HDFS.Bytes
		got, err := d.read(fmt.Sprintf("train@order=%s,epoch=%d", window, epoch))
		if err != nil || len(got) != size {
			t.Fatalf("%d bytes of %d, %v", len(got), size, err)
		}
		ratio := float64(d.status().HDFS.Bytes-before) / size
		t.Logf("%s: %.3f of all bytes left HDFS", window, ratio)
		// One chunk in four is of two runs, and the next epoch begins. From a source that is
		// slow more is made ready ahead, which takes memory from chunks. It was 12 to 28
		// where any of what keeps chunks was missing.
		if ratio > 6 {
			t.Errorf("%s: %.3f of all bytes left HDFS", window, ratio)
		}
	}
}
