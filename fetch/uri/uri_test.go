package uri_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"rankfs/fetch/uri"
	"rankfs/meta"
)

// A source is in HDFS, remote, or copied, by what it is, wherever that is said in its URI.
func TestTraits(t *testing.T) {
	tests := []struct {
		text           string
		want           uri.URI
		inHDFS, found  bool
		remote, copied bool
	}{
		{"file:/a", uri.URI{Scheme: "file", Path: "/a"}, false, true, false, false},
		{"file:///a%20?as=fixed%3A2", uri.URI{Scheme: "file", Path: "/a%20", As: "fixed:2"}, false, false, false, false},
		{"file:/hdfs:/a??", uri.URI{Scheme: "file", Path: "/hdfs:/a?"}, false, true, false, false},
		{"file:/a?as=lmdb", uri.URI{Scheme: "file", Path: "/a", As: "lmdb"}, false, false, false, false},
		{"lmdb:/a?db=x%26y", uri.URI{Scheme: "lmdb", Path: "/a", DB: "x&y"}, false, false, false, false},
		{"hdfs://h:1/a/*", uri.URI{Scheme: "hdfs", Authority: "h:1", Path: "/a/*"}, true, false, true, false},
		{"hdfs:///a?as=sequence", uri.URI{Scheme: "hdfs", Path: "/a", As: "sequence"}, true, false, true, false},
		{"hdfs://h/as=lmdb", uri.URI{Scheme: "hdfs", Authority: "h", Path: "/as=lmdb"}, true, false, true, false},
		{"hdfs://h/a?as=lmdb", uri.URI{Scheme: "hdfs", Authority: "h", Path: "/a", As: "lmdb"}, true, false, false, true},
		{"dataset:d", uri.URI{Scheme: "dataset", Base: "d", To: math.MaxUint64}, false, false, false, false},
		{"dataset:d.1?records=0-9", uri.URI{Scheme: "dataset", Base: "d.1", To: 10}, false, false, false, false},
		{"dataset:d?records=7-", uri.URI{Scheme: "dataset", Base: "d", From: 7, To: math.MaxUint64}, false, false, false, false},
		{"hdfs://h/a?db=x&as=%6cmdb", uri.URI{Scheme: "hdfs", Authority: "h", Path: "/a", As: "lmdb", DB: "x"}, true, false, false, true},
	}
	for _, test := range tests {
		t.Run(test.text, func(t *testing.T) {
			u, err := uri.Parse(test.text)
			if err != nil || u != test.want {
				t.Errorf("%+v, %v, want %+v", u, err, test.want)
			}
			if u.Remote() != test.remote || u.Copied() != test.copied {
				t.Errorf("remote %v, copied %v", u.Remote(), u.Copied())
			}
			if u.InHDFS() != test.inHDFS || u.FormIsFound() != test.found {
				t.Errorf("in HDFS %v, its form is found %v", u.InHDFS(), u.FormIsFound())
			}
		})
	}
}

// A URI that is refused has no traits.
func TestRefused(t *testing.T) {
	for _, text := range []string{"", "/a", "hdfs:", "hdfs:/a", "hdfs://h/a?db=x", "hdfs://h/a?as=lmdb&as=lmdb", "lmdb:/a?as=lmdb", "s3:/a", "file:a", "file://h/a",
		"dataset:", "dataset:/d", "dataset:d@epoch=1", "dataset:d?as=lines", "dataset:d?records=", "dataset:d?records=5", "dataset:d?records=-5",
		"dataset:d?records=9-3", "dataset:d?records=0-18446744073709551615", "dataset:d?records=a-b"} {
		if u, err := uri.Parse(text); !errors.Is(err, meta.ErrInvalid) || u != (uri.URI{}) {
			t.Errorf("%q: %+v, %v", text, u, err)
		}
	}
}

// A range of records that ends before it begins is told so.
func TestRangeBackwards(t *testing.T) {
	_, err := uri.Parse("dataset:d?records=100-99")
	if want := "records=100-99 is not valid: LAST is before FIRST; "; !errors.Is(err, meta.ErrInvalid) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
