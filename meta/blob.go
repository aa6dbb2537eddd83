package meta

import (
	"fmt"
	"path"
	"strings"
	"unicode/utf8"
)

const (
	// BlobDir is the directory of a job in which its blobs are, and the name of the
	// stage that has their bytes.
	BlobDir = "blob"
	// MaxKey is the longest name of a blob, in bytes, with the directories it is in.
	MaxKey = 255
	// MaxPut is how many blobs and directories are put at once.
	MaxPut = 1 << 14
)

// CheckKey reports whether a blob can have that name: names of files, none of which
// begins with a dot, with a slash after each that is a directory.
func CheckKey(key string) error {
	if key == "" || len(key) > MaxKey || !utf8.ValidString(key) || strings.ContainsRune(key, 0) {
		return fmt.Errorf("name of a blob %q %w: use 1 to %d bytes of UTF-8", clip(key), ErrInvalid, MaxKey)
	}
	for part := range strings.SplitSeq(key, "/") {
		if part == "" || part[0] == '.' {
			return fmt.Errorf("name of a blob %q %w: no part of it is empty or begins with a dot", clip(key), ErrInvalid)
		}
	}
	return nil
}

// KeyDir is the directory that a blob is in, empty if it is in none.
func KeyDir(key string) string {
	if dir := path.Dir(key); dir != "." {
		return dir
	}
	return ""
}
