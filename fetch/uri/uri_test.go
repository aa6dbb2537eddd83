package uri_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"rankfs/fetch/uri"
	"rankfs/meta"
)

// A source is local, derived, in HDFS, remote, or copied, by what it is, wherever that is
// said in its URI.
func TestTraits(t *testing.T) {
	tests := []struct {
		text   string
		want   uri.URI
		traits string
	}{
		{"file:/a", uri.URI{Scheme: "file", Path: "/a"}, "local, form is found"},
		{"file:///a%20?as=fixed%3A2", uri.URI{Scheme: "file", Path: "/a%20", As: "fixed:2"}, "local"},
		{"file:/hdfs:/a??", uri.URI{Scheme: "file", Path: "/hdfs:/a?"}, "local, form is found"},
		{"file:/a?as=lmdb", uri.URI{Scheme: "file", Path: "/a", As: "lmdb"}, "local"},
		{"lmdb:/a?db=x%26y", uri.URI{Scheme: "lmdb", Path: "/a", DB: "x&y"}, "local, LMDB"},
		{"hdfs://h:1/a/*", uri.URI{Scheme: "hdfs", Authority: "h:1", Path: "/a/*"}, "in HDFS, remote"},
		{"hdfs:///a?as=sequence", uri.URI{Scheme: "hdfs", Path: "/a", As: "sequence"}, "in HDFS, remote"},
		{"hdfs://h/as=lmdb", uri.URI{Scheme: "hdfs", Authority: "h", Path: "/as=lmdb"}, "in HDFS, remote"},
		{"hdfs://h/a?as=lmdb", uri.URI{Scheme: "hdfs", Authority: "h", Path: "/a", As: "lmdb"}, "in HDFS, copied, LMDB"},
		{"dataset:d", uri.URI{Scheme: "dataset", Base: "d", To: math.MaxUint64}, "derived"},
		{"dataset:d.1?records=0-9", uri.URI{Scheme: "dataset", Base: "d.1", To: 10}, "derived"},
		{"dataset:d?records=7-", uri.URI{Scheme: "dataset", Base: "d", From: 7, To: math.MaxUint64}, "derived"},
		{"shuffle:words/count.1", uri.URI{Scheme: "shuffle", Job: "words", Stage: "count.1"}, "in the pool, remote, whole"},
		{"hdfs://h/a?db=x&as=%6cmdb", uri.URI{Scheme: "hdfs", Authority: "h", Path: "/a", As: "lmdb", DB: "x"}, "in HDFS, copied, LMDB"},
	}
	for _, test := range tests {
		t.Run(test.text, func(t *testing.T) {
			u, err := uri.Parse(test.text)
			if err != nil || u != test.want {
				t.Errorf("%+v, %v, want %+v", u, err, test.want)
			}
			var traits []string
			for _, one := range []struct {
				has   bool
				trait string
			}{
				{u.Local(), "local"}, {u.Derived(), "derived"}, {u.InHDFS(), "in HDFS"}, {u.InPool(), "in the pool"}, {u.Remote(), "remote"}, {u.Whole(), "whole"},
				{u.Copied(), "copied"}, {u.IsLMDB(), "LMDB"}, {u.FormIsFound(), "form is found"},
			} {
				if one.has {
					traits = append(traits, one.trait)
				}
			}
			if got := strings.Join(traits, ", "); got != test.traits {
				t.Errorf("it is %s, want %s", got, test.traits)
			}
		})
	}
}

// A URI that is refused has no traits.
func TestRefused(t *testing.T) {
	for _, text := range []string{"", "/a", "hdfs:", "hdfs:/a", "hdfs://h/a?db=x", "hdfs://h/a?as=lmdb&as=lmdb", "lmdb:/a?as=lmdb", "s3:/a", "file:a", "file://h/a",
		"dataset:", "dataset:/d", "dataset:d@epoch=1", "dataset:d?as=lines", "dataset:d?records=", "dataset:d?records=5", "dataset:d?records=-5",
		"dataset:d?records=9-3", "dataset:d?records=0-18446744073709551615", "dataset:d?records=a-b",
		"shuffle:", "shuffle:j", "shuffle:/j/s", "shuffle:j/s/t", "shuffle:j/", "shuffle:j/s?as=lines"} {
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
