package hdfs_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"rankfs/test/cluster"
	"rankfs/test/hadoop"
)

// The values of SequenceFiles that Hadoop wrote, each by another codec, are read
// through a mount as they were written, in their order and in others. A codec that is not
// read is refused when the dataset is made.
func TestSequenceFiles(t *testing.T) {
	c := cluster.Mounts(t)
	p, err := hadoop.Start(t.Context(), "Sequence")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	dir := c.Dir(t)
	put := func(name string, order hadoop.SequenceOrder) [][]byte {
		t.Helper()
		order.Compression, order.Key, order.Value = "BLOCK", "Text", "BytesWritable"
		order.Records, order.Size, order.BlockSize = 600, 300, 10_000
		content, _, err := p.Sequence(t.TempDir(), order)
		if err != nil {
			t.Fatal(err)
		}
		c.Host("data2").Put(t, dir+"/"+name, content, 2, 32<<10)
		return order.Values()
	}
	var values [][]byte
	for i, codec := range []string{"BZip2Codec", "DefaultCodec", "DeflateCodec", "GzipCodec", "Lz4Codec", "SnappyCodec", "ZStandardCodec"} {
		values = append(values, put("good/"+codec, hadoop.SequenceOrder{Codec: codec, Seed: int64(i)})...)
	}
	put("bad/f", hadoop.SequenceOrder{Codec: "Own"})

	d := newPlace(t, c, "data1").start()
	d.create("values", dir+"/good", "--as", "sequence", "--batch", "100")
	all := string(bytes.Join(values, nil))
	if got, err := d.read("values@order=none"); err != nil || got != all {
		t.Errorf("other bytes than were written, or %v", err)
	}
	written := make(map[string]bool)
	for _, v := range values {
		written[string(v)] = true
	}
	for i := range 20 {
		if got, err := d.batch("values@order=full,batch=1", i); err != nil || !written[got] {
			t.Errorf("batch %d of one value has %d bytes that are none, or %v", i, len(got), err)
		}
	}
	_, err = d.Answer("dataset", "create", "bad", "--source", "hdfs://"+c.Nameservice()+dir+"/bad", "--as", "sequence")
	said := strings.Join(strings.Fields(fmt.Sprint(err)), " ")
	if !strings.Contains(said, `codec "Sequence$Own" is not one that can be read: write the file with one of BZip2Codec,`) || !strings.Contains(said, "bad/f") {
		t.Errorf("an unknown codec is refused with %v", err)
	}
	if out := d.Do("dataset", "ls"); strings.Contains(out, "bad") {
		t.Errorf("it is registered: %s", out)
	}
}
