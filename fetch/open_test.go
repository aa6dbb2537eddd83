package fetch_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rankfs/fetch"
	"rankfs/meta"
	"rankfs/test/sourcetest"
)

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"f": "ab\ncd\n", "f?x": "a\nb\n", "f%20": "ab\ncd\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name, uri string
		records   uint64
	}{
		{"a file has lines", "file:DIR/f", 2},
		{"lines", "file:DIR/f?as=lines", 2},
		{"pieces", "file:DIR/f?as=fixed:2", 3},
		{"escaped option", "file:DIR/f?as=fixed%3A2", 3},
		{"one record", "file:DIR/f?as=files", 1},
		{"a directory has files", "file:DIR", 3},
		{"files", "file:DIR/?as=files", 3},
		{"empty options", "file:DIR/f?", 2},
		{"question mark in the path", "file:DIR/f?x?as=lines", 2},
		{"percent sign in the path", "file:DIR/f%20", 2},
		{"slashes of a URL", "file://DIR/f", 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			uri := strings.Replace(test.uri, "DIR", dir, 1)
			d := sourcetest.Attach(t, sourcetest.Fixture{Open: func() (fetch.Source, error) { return fetch.Open(uri, nil) }})
			if d.Records() != test.records {
				t.Errorf("%d records, want %d", d.Records(), test.records)
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, uri string
		is        error
		says      string
	}{
		{"no scheme", "/a", meta.ErrInvalid, "file:PATH"},
		{"unknown scheme", "s3:/a", meta.ErrInvalid, "there are file, lmdb, hdfs, dataset and shuffle"},
		{"relative path", "file:a", meta.ErrInvalid, "use an absolute path"},
		{"relative path to a database", "lmdb:a", meta.ErrInvalid, "use an absolute path"},
		{"no path", "file:", meta.ErrInvalid, "use an absolute path"},
		{"host", "file://host/f", meta.ErrInvalid, "name of a host"},
		{"unknown option", "file:DIR/f?form=lines", meta.ErrInvalid, "use as"},
		{"option of another scheme", "lmdb:DIR?as=lines", meta.ErrInvalid, "use db"},
		{"option twice", "file:DIR/f?as=lines&as=lines", meta.ErrInvalid, "once"},
		{"bad escape", "file:DIR/f?as=%zz", meta.ErrInvalid, "%zz"},
		{"unknown form", "file:DIR/f?as=rows", meta.ErrInvalid, "lines, fixed:N or files"},
		{"no number", "file:DIR/f?as=fixed:x", meta.ErrInvalid, "fixed:4096"},
		{"zero", "file:DIR/f?as=fixed:0", meta.ErrInvalid, "use 1 to 281474976710655"},
		{"negative", "file:DIR/f?as=fixed:-1", meta.ErrInvalid, "use 1 to 281474976710655"},
		{"huge", "file:DIR/f?as=fixed:9223372036854775807", meta.ErrInvalid, "use 1 to 281474976710655"},
		{"lines of a directory", "file:DIR?as=lines", meta.ErrInvalid, "it is a directory"},
		{"device", "file:/dev/zero", meta.ErrInvalid, "no regular file; write what it gives to one"},
		{"missing", "file:DIR/g", os.ErrNotExist, "no such file"},
		{"zero byte", "file:DIR/f\x00g", nil, "invalid argument"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			src, err := fetch.Open(strings.Replace(test.uri, "DIR", dir, 1), nil)
			if err == nil || src != nil {
				t.Fatalf("got %v, %v", src, err)
			}
			if test.is != nil && !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %q, want %v saying %q", err, test.is, test.says)
			}
		})
	}
}
