package hdfs_test

import (
	"slices"
	"testing"
	"unicode/utf8"

	"rankfs/fetch/hdfs"
)

func TestBefore(t *testing.T) {
	names := []string{"\x01", " ", "0", "0 ", "00", "0a", "1", "a", "a\u0080", "a\u00bf", "a\u00c0", "a\u07ff", "a\u0800",
		"a\ud7ff", "a\ue000", "a\uffff", "a\U00010000", "a\U0010fffe", "a\U0010ffff", "b", "ä", "äa", "日本", "日本語"}
	slices.SortFunc(names, hdfs.Listed)
	for i, name := range names {
		at := hdfs.Before(name)
		if hdfs.Listed(at, name) >= 0 || i > 0 && hdfs.Listed(at, names[i-1]) < 0 {
			t.Errorf("%q is not between %q and it", at, names[:i])
		}
		if !utf8.ValidString(at) {
			t.Errorf("%q is no UTF-8", at)
		}
	}
}
