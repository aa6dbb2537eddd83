package namenode_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"rankfs/fetch/hdfs/namenode"
	"rankfs/meta"
)

func TestGlob(t *testing.T) {
	c := client(t, tree(2, map[string][]proto.Message{
		"/":         {directory("a"), directory("b"), file("top", 1, nil)},
		"/a":        {file(".hid", 1, nil), directory("2024"), directory("2025"), file("x.lmdb", 1, nil)},
		"/a/2024":   {file("p-0", 1, nil), file("p-1", 1, nil), file("q*", 1, nil)},
		"/a/2025":   {file("p-0", 1, nil), file("p-10", 1, nil), file("p-é", 1, nil)},
		"/b":        {directory("2024"), file("{x}", 1, nil)},
		"/b/2024":   {file("p-0", 1, nil), file("p-1+", 1, nil)},
		"/b/2024/z": {},
	}))
	rows := []struct{ pattern, want string }{
		{"/top", "/top"},
		{"/nothing", ""},
		{"/nothing/*", ""},
		{"/top/*", ""},
		{"/*", "/a /b /top"},
		{"/a/*", "/a/.hid /a/2024 /a/2025 /a/x.lmdb"},
		{"/a/*/p-?", "/a/2024/p-0 /a/2024/p-1 /a/2025/p-0 /a/2025/p-é"},
		{"/*/2024/p-*", "/a/2024/p-0 /a/2024/p-1 /b/2024/p-0 /b/2024/p-1+"},
		{"/*/2024/p-1+", "/b/2024/p-1+"},
		{"/a/202[5-9]/p-[^0-9]", "/a/2025/p-é"},
		{"/a/202[!5]/p-[0a]", "/a/2024/p-0"},
		{"/a/{2024,2025}/p-{0,10}", "/a/2024/p-0 /a/2025/p-0 /a/2025/p-10"},
		{"/{a/2025,b/2024}/p-0", "/a/2025/p-0 /b/2024/p-0"},
		{"/{a/2024,{b,a}/2024,*/2024}/p-0", "/a/2024/p-0 /b/2024/p-0"},
		{"/{a/2024/{p,q}-0,b/*}", "/a/2024/p-0 /b/2024 /b/{x}"},
		{`/a/2024/q\*`, "/a/2024/q*"},
		{`/b/\{x\}`, "/b/{x}"},
		{`/b/\{[x]}`, "/b/{x}"},
		{"/a/2024/p-0", "/a/2024/p-0"},
		{"/a/[a-z].lmdb", "/a/x.lmdb"},
	}
	for _, r := range rows {
		t.Run(r.pattern, func(t *testing.T) {
			var got []string
			err := c.Glob(t.Context(), r.pattern, false, func(name string, st namenode.Status) error {
				got = append(got, name)
				if !strings.HasSuffix(name, "/"+st.Name) {
					t.Errorf("%q is called %q", name, st.Name)
				}
				return nil
			})
			if err != nil || !slices.Equal(got, strings.Fields(r.want)) {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	for _, pattern := range []string{"", "a", "/a/", "/a//b", "/a/..", "/{a", "/[a", "/a\\", "/[b-a]", "/{a/b", "/{a,/b}/c",
		strings.Repeat("/{a/b,c/d}", 11), "/a\x00"} {
		err := c.Glob(t.Context(), pattern, false, nil)
		holds(t, err, []string{"HDFS pattern"}, []error{meta.ErrInvalid})
	}
	mine := errors.Join(meta.ErrNotExist)
	if err := c.Glob(t.Context(), "/*/*", false, func(string, namenode.Status) error { return mine }); err != mine {
		t.Errorf("the caller's error became %v", err)
	}
}
