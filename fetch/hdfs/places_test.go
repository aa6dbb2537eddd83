package hdfs_test

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"rankfs/fetch"
	"rankfs/fetch/hdfs"
	"rankfs/fetch/hdfs/namenode"
	"rankfs/fetch/index"
	"rankfs/test/cluster"
	"rankfs/test/sourcetest"
)

// Records that are read one by one cost no call of the namenode each.
func TestShuffledRecordsAreLocatedTogether(t *testing.T) {
	const record, records, blocks = 256, 2000, 8
	c := cluster.Shared(t)
	path := c.Dir(t) + "/f"
	content := make([]byte, record*records)
	rand.NewChaCha8([32]byte{1}).Read(content)
	c.Host("data1").Put(t, path, content, 2, block)
	k := clusters(t, c, nil)
	d := sourcetest.Attach(t, sourcetest.Fixture{Open: func() (fetch.Source, error) {
		return fetch.Open("hdfs://"+c.Nameservice()+path+"?as=fixed:256", &fetch.Env{HDFS: k})
	}})
	asked, err := k.CountLocates(c.Nameservice())
	if err != nil {
		t.Fatal(err)
	}
	var extents []index.Extent
	var want []byte
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(records) {
		extents = append(extents, d.Extent(uint64(i)))
		want = append(want, content[i*record:(i+1)*record]...)
	}
	got := make([]byte, len(want))
	if err := d.Read(t.Context(), extents, got); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("other bytes, or %v", err)
	}
	// As often as a place was too old to be believed, but not for each record.
	if n := asked.Load(); n < blocks || n > records/2 {
		t.Errorf("the namenode was asked %d times for %d records of %d blocks", n, records, blocks)
	}
}

func TestPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p hdfs.Places
		first, second := namenode.Block{Off: 0, Size: 100, ID: 1}, namenode.Block{Off: 100, Size: 50, ID: 2}
		is := func(path string, at int64, want uint64) {
			t.Helper()
			if b, ok := p.Find(path, at); b.ID != want || ok != (want != 0) {
				t.Errorf("%s at %d is in block %d, %v; want %d", path, at, b.ID, ok, want)
			}
		}
		is("a", 0, 0)
		p.Put("a", second)
		is("a", 99, 0)
		is("a", 100, 2)
		is("a", 150, 0)
		time.Sleep(600 * time.Millisecond)
		p.Put("a", first)
		is("a", 0, 1)
		is("a", 99, 1)
		is("a", 149, 2)
		is("b", 0, 0)
		first.ID = 3
		p.Put("a", first)
		is("a", 0, 3)
		time.Sleep(600 * time.Millisecond)
		is("a", 0, 0)   // the oldest is more than a second old
		is("a", 100, 0) // and all go together
		for i := range int64(3 * hdfs.MaxPlaces) {
			p.Put("a", namenode.Block{Off: i, Size: 1, ID: uint64(i + 1)})
		}
		known := 0
		for i := range int64(3 * hdfs.MaxPlaces) {
			if _, ok := p.Find("a", i); ok {
				known++
			}
		}
		if known == 0 || known > hdfs.MaxPlaces {
			t.Errorf("%d places are remembered", known)
		}
		is("a", 3*hdfs.MaxPlaces-1, 3*hdfs.MaxPlaces)
	})
}
