package sequence_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rankfs/fetch/sequence"
)

// goldenValues are the payloads that testdata/Golden.java wrote.
func goldenValues(class string) [][]byte {
	values := make([][]byte, 40)
	for i := range values {
		if class == "LongWritable" {
			values[i] = binary.BigEndian.AppendUint64(nil, uint64(i)*1000003)
			continue
		}
		size := i * 37 % 90
		if special := []int{0, 1, 127, 128, 129, 255, 256}; i < len(special) {
			size = special[i]
		}
		for j := range size {
			values[i] = append(values[i], byte('a'+(i+j/3)%26))
		}
	}
	return values
}

// Files of Hadoop's own library, cut in two anywhere, are what went into them.
func TestGolden(t *testing.T) {
	names, err := filepath.Glob("testdata/*.seq")
	if err != nil || len(names) != 3*13 {
		t.Fatalf("%d golden files, want 39: %v", len(names), err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		h := header(t, data)
		class := strings.TrimSuffix(name[strings.LastIndex(name, "-")+1:], ".seq")
		if h.Version != 6 || h.Value != "org.apache.hadoop.io."+class ||
			!strings.Contains(name, h.Compression.String()) {
			t.Errorf("%s: header %+v", name, h)
		}
		want := bytes.Join(goldenValues(class), nil)
		size := int64(len(data))
		step := int64(7)
		if strings.Contains(name, "BZip2") {
			step = 211 // a new decoder of 3.6 MB for each stream takes a while
		}
		for cut := int64(0); cut <= size; cut += step {
			got := append(read(t, h, data, 0, cut), read(t, h, data, cut, size)...)
			if !bytes.Equal(got, want) {
				t.Fatalf("%s cut at %d: not what was written", name, cut)
			}
		}
	}
}

// read reads what a scan says is there.
func read(t *testing.T, h sequence.Header, data []byte, from, to int64) []byte {
	t.Helper()
	total := int64(0)
	err := split(h, data, from, to).Scan(t.Context(), func(_, n int64) error {
		total += n
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	dst := make([]byte, total)
	if err := split(h, data, from, to).Copy(context.Background(), dst); err != nil {
		t.Fatal(err)
	}
	return dst
}
