package meta_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"rankfs/meta"
)

// A path in a command that is advised can be typed as it is said.
func TestShellWord(t *testing.T) {
	for word, want := range map[string]string{
		"/data/train": "/data/train", "hdfs://nn:8020/a=1,b@2": "hdfs://nn:8020/a=1,b@2", "": "''",
		"/tmp/odd dir": "'/tmp/odd dir'", "x'y.txt": `'x'\''y.txt'`, "/a*": "'/a*'", "~": "'~'", "a$b": "'a$b'",
	} {
		if got := meta.ShellWord(word); got != want {
			t.Errorf("%s: %s, want %s", word, got, want)
		}
	}
}

// What a person reads of a path has no names of calls, however deep the error is.
func TestPlain(t *testing.T) {
	open := &fs.PathError{Op: "open", Path: "/a", Err: syscall.EACCES}
	loop := &fs.PathError{Op: "openat", Path: "b", Err: syscall.ELOOP}
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"alone", open, "/a: permission denied"},
		{"in a sentence", fmt.Errorf("open source %q: %w; look for it", "file:/a", open), `open source "file:/a": /a: permission denied; look for it`},
		{"not there", &fs.PathError{Op: "stat", Path: "/a", Err: syscall.ENOENT}, "/a: there is no such file or directory"},
		{"in a circle", fmt.Errorf("read state: %w", loop), "read state: b: its symbolic links lead in a circle"},
		{"too long", &fs.PathError{Op: "mkdir", Path: "/a", Err: syscall.ENAMETOOLONG}, "/a: its name is too long"},
		{"another in it", &fs.PathError{Op: "read", Path: "/a/b", Err: open}, "/a/b: /a: permission denied"},
		{"several", errors.Join(fmt.Errorf("one: %w", open), fmt.Errorf("two: %w", loop)), "one: /a: permission denied\ntwo: b: its symbolic links lead in a circle"},
		{"two paths", fmt.Errorf("index: %w", &os.LinkError{Op: "rename", Old: "/a", New: "/b", Err: syscall.EROFS}), "index: /a to /b: it is on a read-only file system"},
		{"a call alone", fmt.Errorf("source %q: %w", "/a", os.NewSyscallError("stat", syscall.ENOENT)), `source "/a": there is no such file or directory`},
		{"a call that is refused", fmt.Errorf("ask a: %w", os.NewSyscallError("connect", syscall.ECONNREFUSED)), "ask a: connection refused"},
		{"of a kind", meta.Worded(meta.ErrInvalid, "state: %w", open), "state: /a: permission denied"},
		{"of another kind", fmt.Errorf("dataset %w", meta.ErrNotExist), "dataset does not exist"},
	} {
		if got := meta.Plain(tt.err); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		if got := meta.Tell(tt.err).Message; got != tt.want {
			t.Errorf("%s: told %q, want %q", tt.name, got, tt.want)
		}
	}
}
