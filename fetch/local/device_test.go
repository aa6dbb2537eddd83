package local_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"rankfs/fetch"
	"rankfs/fetch/index"
	"rankfs/meta"
)

// A disk may have another number after a machine has started anew: what was
// indexed on it is still what it was, also by an index that has the number.
func TestAnotherDeviceNumber(t *testing.T) {
	uri := "file:" + write(t, "a\nb\n") + "?as=lines"
	open := func() fetch.Source {
		src, err := fetch.Open(uri, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { src.Close() })
		return src
	}
	path := filepath.Join(t.TempDir(), "index")
	if err := fetch.Build(t.Context(), open(), path, nil); err != nil {
		t.Fatal(err)
	}
	x, err := index.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	now := x.Fingerprint()
	if strings.Contains(now, "dev=") || !strings.Contains(now, ",ino=") {
		t.Fatalf("the version is %q", now)
	}
	before := strings.Replace(now, ",ino=", ",dev=fd03,ino=", 1)
	if err := open().Attach(t.Context(), x, before); err != nil {
		t.Error(err)
	}
	other := strings.Replace(before, ",ino=", ",ino=1", 1)
	if err := open().Attach(t.Context(), x, other); !errors.Is(err, meta.ErrStale) {
		t.Errorf("another file: %v", err)
	}
}
